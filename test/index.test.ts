import { describe, expect, expectTypeOf, it } from 'vitest';
import * as api from '../src/index.ts';

describe('the public API', () => {
  it('is these names and no others', () => {
    expect(Object.keys(api).sort()).toMatchInlineSnapshot(`
      [
        "EXIT",
        "TraceError",
        "buildReport",
        "decideSurface",
        "detectAll",
        "openRecording",
        "renderJson",
        "renderTerminal",
        "toolVersion",
      ]
    `);
  });

  it('goes from a path to a text', () => {
    expectTypeOf(api.openRecording).parameter(0).toBeString();
    expectTypeOf(api.openRecording).returns.resolves.toExtend<api.RecordingView>();
    expectTypeOf(api.detectAll).toBeCallableWith({} as api.RecordingView);
    expectTypeOf(api.buildReport).returns.toEqualTypeOf<api.Report>();
    expectTypeOf(api.renderTerminal).returns.toBeString();
  });
});
