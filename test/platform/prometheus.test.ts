import { describe, expect, it } from 'vitest';
import { PageMemory, parsePage } from '../../src/platform/prometheus.ts';
import { random } from '../recording/observations.ts';

/** vLLM's page, cut. */
const VLLM = `# HELP python_info Python platform information
# TYPE python_info gauge
python_info{implementation="CPython",major="3",version="3.12.3"} 1.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1.234e+03
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="tiny"} 7.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny"} 0.2
`;

describe('a page', () => {
  it('of the text format gives families and samples under their own names', () => {
    const page = parsePage(VLLM);
    expect(page.unreadable).toBe(0);
    expect(page.families.get('vllm:num_requests_running')).toEqual({
      name: 'vllm:num_requests_running',
      type: 'gauge',
      help: 'Number of requests in model execution batches.',
      unit: '',
    });
    expect(page.samples).toHaveLength(7);
    expect(page.samples[1]).toEqual({
      name: 'vllm:num_requests_running',
      family: 'vllm:num_requests_running',
      labels: { engine: '0', model_name: 'tiny' },
      value: 3,
      series: 'vllm:num_requests_running{engine="0",model_name="tiny"}',
    });
    expect(page.samples[4]).toMatchObject({
      name: 'vllm:time_to_first_token_seconds_bucket',
      family: 'vllm:time_to_first_token_seconds',
      labels: { le: '+Inf' },
      value: 7,
    });
  });

  it('of OpenMetrics gives the same: suffixes, units, exemplars, timestamps, the end', () => {
    const page = parsePage(`# TYPE requests counter
# UNIT requests requests
# HELP requests All \\"requests\\"\\nso far
requests_total{code="200"} 17.0 1790000000.123 # {trace_id="0af7"} 0.67 1790000000.1
requests_created{code="200"} 1789999999.5
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 8 # {} 0.054
# EOF
garbage after the end
`);
    expect(page.unreadable).toBe(0);
    expect(page.families.get('requests')).toEqual({
      name: 'requests',
      type: 'counter',
      help: 'All "requests"\nso far',
      unit: 'requests',
    });
    expect(page.samples.map(({ name, family, value }) => [name, family, value])).toEqual([
      ['requests_total', 'requests', 17],
      ['requests_created', 'requests', 1_789_999_999.5],
      ['took_seconds_bucket', 'took_seconds', 8],
    ]);
  });
});

describe('a line', () => {
  const sample = (line: string) => parsePage(line).samples[0];

  it.each([
    ['m 1', 1],
    ['m -1.5e-3', -0.0015],
    ['m .5', 0.5],
    ['m 5.', 5],
    ['m +Inf', Infinity],
    ['m -Inf', -Infinity],
    ['m inf', Infinity],
    ['m NaN', NaN],
    ['m\t7\t1790000000123', 7],
    ['  m   7  ', 7],
    ['m{} 7', 7],
    ['m {a="b"} 7', 7],
    ['m{a="b",} 7', 7],
    ['m{ a = "b" , c = "d" } 7', 7],
  ])('%j is %d', (line, value) => {
    expect(sample(line)).toMatchObject({ name: 'm', value });
  });

  it.each([
    ['m{a="x\\\\y"} 1', 'x\\y'],
    ['m{a="x\\"y"} 1', 'x"y'],
    ['m{a="x\\ny"} 1', 'x\ny'],
    ['m{a="x\\ty"} 1', 'x\\ty'],
    ['m{a="} # , ="} 1', '} # , ='],
    ['m{a=""} 1', ''],
    ['m{a="größer"} 1', 'größer'],
  ])('%s has the label value %j', (line, value) => {
    expect(sample(line)?.labels).toEqual({ a: value });
  });

  it('may quote names', () => {
    expect(sample('{"my.metric","a b"="c"} 2')).toEqual({
      name: 'my.metric',
      family: 'my.metric',
      labels: { 'a b': 'c' },
      value: 2,
      series: '{"my.metric","a b"="c"}',
    });
  });

  it.each([
    'm',
    'm x',
    'm 1x',
    'm 0x10',
    '7',
    '{a="b"} 7',
    'm{a="b} 7',
    'm{a=b} 7',
    'm{a} 7',
    'm{="b"} 7',
    'm{a="b" c="d"} 7',
    '<html><body>404</body></html>',
    '{"error": "not found"}',
  ])('%j is no sample, and counted', (line) => {
    expect(parsePage(line)).toMatchObject({ samples: [], unreadable: 1 });
  });

  it('with a label named __proto__ has a label, no other prototype', () => {
    const labels = sample('m{__proto__="x"} 1')?.labels;
    expect(Object.keys(labels ?? {})).toEqual(['__proto__']);
  });
});

describe('the plain lines that are read quickly', () => {
  it.each([
    'm 1',
    'vllm:x{engine="0",le="+Inf"} 7.0',
    'm{a="b",} 7',
    'm{a="} 5 "} 1',
    'm{a="b"c="d"} 1',
    'm{,} 1',
    'm{a="b",,} 1',
    'm{} 1e5',
    'm{a="b"} 1e',
    'm{a="b"} +-1',
    'm{a="b"} .',
    'm{a="x{y"} 3',
    'm{__proto__="x"} 1',
    `m{a="${'x'.repeat(500)}"} 1`,
    `${'m'.repeat(300)} 1`,
  ])('%j says the same with spaces that are not plain', (line) => {
    const read = (text: string) =>
      parsePage(text).samples.map(({ name, labels, value }) => ({ name, labels, value }));
    expect(read(line)).toEqual(read(line.replace(/ (?=[^ ]*$)/, '\t ')));
  });

  it('are the same with the memory of an earlier page, which has an end', () => {
    const memory = new PageMemory();
    for (let nth = 0; nth < 3; nth++) {
      expect(parsePage(VLLM, memory).samples).toEqual(parsePage(VLLM).samples);
      const many = Array.from({ length: 30_000 }, (_, i) => `n{i="${nth * 30_000 + i}"} 1`);
      expect(parsePage(many.join('\n'), memory).samples).toHaveLength(30_000);
    }
  });
});

describe('what a page may not do', () => {
  it('is to have names, values or labels without end', () => {
    const long = 'x'.repeat(100_000);
    expect(parsePage(`${long} 1`).unreadable).toBe(1);
    const labels = parsePage(`m{a="${long}"} 1`).samples[0]?.labels;
    expect(labels?.['a']).toHaveLength(400);
    const many = Array.from({ length: 1000 }, (_, i) => `l${i}="v"`).join(',');
    expect(Object.keys(parsePage(`m{${many}} 1`).samples[0]?.labels ?? {})).toHaveLength(64);
  });

  it('is to have samples without end: they are counted', () => {
    const page = parsePage('m 1\n'.repeat(50_010));
    expect([page.samples.length, page.dropped]).toEqual([50_000, 10]);
  });

  it('is to make the parser throw or hang: random changes of a page', () => {
    const next = random(1);
    for (let round = 0; round < 500; round++) {
      const bytes = Buffer.from(VLLM);
      for (let i = 0; i < 1 + next() * 20; i++)
        bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
      const page = parsePage(bytes.toString('latin1'));
      expect(page.samples.length + page.unreadable).toBeLessThan(40);
    }
  });
});
