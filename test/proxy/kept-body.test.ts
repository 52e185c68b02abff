import { expect, it } from 'vitest';
import { KeptBody } from '../../src/proxy/kept-body.ts';

it('a body that is cut within a character is still text', () => {
  const kept = new KeptBody(5);
  kept.add(Buffer.from('aä'));
  kept.add(Buffer.from('aäö'));
  expect(kept).toMatchObject({ size: 8, isCut: true });
  expect(kept.content()).toEqual({ body: 'aäa', encoding: 'utf8' });
  const whole = new KeptBody(100);
  whole.add(Buffer.from([0xff, 0x00]));
  expect(whole.content()).toEqual({ body: '/wA=', encoding: 'base64' });
});
