export const loadHelp = `trace load
`;
