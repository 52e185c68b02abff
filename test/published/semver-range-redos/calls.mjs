// Ranges of versions that others wrote.
import semver from 'semver';

export async function valid(spaces) {
  return semver.validRange(`>=1.2.3${' '.repeat(spaces)}<1.3.0`);
}
