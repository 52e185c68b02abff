import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * A reporter for .ci/tests.mjs: what each file came to, as JSON into the file that TRACEWRIGHT_REPORT names.
 * Vitest's own does not say which file an unhandled error belongs to.
 */
export default class Report {
  onTestRunEnd(modules, unhandled, reason) {
    const files = new Map();
    const of = (path) => {
      const name = relative(process.cwd(), path);
      if (!files.has(name)) files.set(name, { passed: [], failed: [] });
      return files.get(name);
    };
    for (const module of modules) {
      const file = of(module.moduleId);
      for (const error of module.errors()) file.failed.push(['(the file)', firstLine(error)]);
      for (const suite of module.children.allSuites()) {
        for (const error of suite.errors()) file.failed.push([suite.fullName, firstLine(error)]);
      }
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        if (state === 'passed') file.passed.push(test.fullName);
        else if (state !== 'skipped') file.failed.push([test.fullName, firstLine(errors?.[0])]);
      }
    }
    const lost = [];
    for (const error of unhandled) {
      if (error.VITEST_TEST_PATH === undefined) lost.push(firstLine(error));
      else of(error.VITEST_TEST_PATH).failed.push(['(unhandled)', firstLine(error)]);
    }
    writeFileSync(
      process.env.TRACEWRIGHT_REPORT,
      JSON.stringify({ reason, files: Object.fromEntries(files), lost }),
    );
  }
}

function firstLine(error) {
  return String(error?.message ?? 'it did not end').split('\n', 1)[0].slice(0, 300);
}
