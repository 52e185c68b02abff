// The size of a picture that turns out to be a folder.
import { tmpdir } from 'node:os';
import { imageSize } from 'image-size';

export async function measure() {
  try {
    return imageSize(tmpdir()).width;
  } catch (error) {
    return error.code;
  }
}
