/**
 * Words that are one token each, with the space before them, in the vocabularies of Llama 2 and 3, Mistral, GPT-2, GPT-4 (cl100k) and GPT-4o
 * (o200k): chosen by encoding with each. 1,024 of them, so ten bits of a random number are a word.
 */
export const WORDS: readonly string[] = `
this that with return from class public have self will your void else more they data name true null their private time
which false value about string over type inter part work when other been were file would year some there said like
also than static just result them into what list case first import char only print back need start user under then
people should test make after right long array read form want number require size where while look could know hand
most break every point error text show find current used play help these pass down even item through last event again
high line does before because state here final very model call well object years default view many being good using
request child echo person style method expect found post such think differ much count check open next follow game path
each support sign those system best same create made mark group world process main report take free action index real
build message input between table head must order product double place week program code without still assert field
team second going range fact home left direct allow page around really image target both level local content quest
float develop extends great month super title context life catch change book version three base during console against
power width label project element success date match node another care effect service since full turn body stand block
keep throw things control come custom source await mill output disc govern might never hard called options height
small access address little port status update link given better feel already always parent less account valid sure
search invest says rest perform site values video cell player cost total load clear seem short company done health
days initial organ reason within design cent school include stop later client love able give copy either lead family
option exist offer water step display times four present room once results talk grow mass mean until market area
length kind light side example camp miss based plan away button render near country author along express begin thing
single rights women season sent command recent money told working query window least column record making close
percent past write move special city tell font course late amount enough looking hold price today means story meet
sort thought task review switch above word provide publish cover whether having employ large created host role deal
problem press though points ever million happen server files often info space store format details face save items
social major food members send become makes global contact except certain news device below media fail added came
delete card root handle getting claim enter night doing pick watch human girl strong house track pack section wait
throws terms apply session others fund several subject history users future started mode took games needs known seen
border live hope young study network limit went fire across visit token months learn mind quick comment series bill
frame draw comes filter remove front virtual hours models early easy buffer cannot period screen common suggest accept
random click players answer walk treat five friend clean words header discuss issue land stream quality works half
police simple empty cook nothing running someone share entry changes offset events whole needed likely fight writing
rate correct fall believe minutes similar taken moment bring entire trying member foot board push please types edit
cult defined thread instead idea film teach phone active article almost sell connect feature install general asked
icon party vector normal further music speed taking forward failed concern sender term enjoy returns weight module
loss engine issues parse stay lower perfect exact former margin heart rather however inside graph attempt round
friends energy behind raise wanted policy third prior exit release shall outside ground unique pour tree byte matter
shows ball simply fast memory extra wrong seems unit takes appear coming quite pretty longer menu names effort actual
fields cases higher itself respect numbers sound alert lines soon join fill choose office hash flag note upon groups
risk woman gets cause focus regard various receive commit leave align reading notice lock padding states cross script
arch written images force prevent living pattern entity useful tool feed popular methods allowed impact train related
scale score student average court parts saying anyone song channel changed finally convert ways plus profile ready
sense latest region deep reach counter weeks damage lost himself paper staff driver stock rules modify stack playing
bottom couple road held avoid insert machine areas movie uses license ability choice wonder legal goes regular goal
touch built worth natural storage bytes travel passed grid levels looks respond threat rule seek systems drop errors
ensure usually serious door plant began chance protect route primary leaders updated inform bank sample hands offers
shape sleep sold safe shared shoot scene became park wrote equal serial allows middle quickly actions proper objects
matrix ones green paint layer views core expert secret chat origin effects setting happy finish camera stuff sale
mention town slow blue lives cast dark package club loop played complex deliver mobile owner leading flow shift eyes
nice floor wish stage solid meeting worked editor medical hour books speak mount felt modern seconds roll growth
turned letter collect drive photo gave shot mother morning trade parents piece sites reader heard gold fair sales
measure decided contain manager pain plans loaded grand credit tried reports adult consist whose gives easily ideas
pair split capital hear exists library calls brand charge depend huge basic star federal carry saved conduct skin
earlier layout temper wants picture pull pages edge bound comfort shown classes obtain lack none hair laws knew wide
jobs scope keys exactly mask theme fine writer destroy career named panel rock trust removed looked towards rows
define father nature nation wall exam nearly cool handler predict drink tests myself greater thous costs launch band
figure rank giving plot billion headers brought partial remain safety batch zero paid queue maximum birth maybe
limited broad fans foreign tour moving fully agreed unless coach photos teams improve enable concept sets meaning
daily strict vehicle pool summer surface workers master stories steps tools
`
  .trim()
  .split(/\s/);
