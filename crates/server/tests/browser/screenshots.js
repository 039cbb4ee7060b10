// Takes the README's pictures, docs/images/console-light.webp and console-dark.webp: `ci/screenshots` runs it.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { launch, root, serve } from './harness.js';

/** Returns a PNG as WebP, which takes less than half of the bytes. */
async function webp(browser, png) {
  const page = await browser.newPage();
  const converted = await page.evaluate(async (data) => {
    const image = await createImageBitmap(await (await fetch(data)).blob());
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    canvas.getContext('2d').drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', 0.8).split(',')[1];
  }, `data:image/png;base64,${png.toString('base64')}`);
  await page.close();
  return Buffer.from(converted, 'base64');
}

const images = path.join(root, 'docs/images');
mkdirSync(images, { recursive: true });
const browser = await launch();
const server = await serve();
try {
  server.run('disable', 'BRIARWICK-GB', '--note', 'Out of stock', '--yes');
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 600 } });
    const page = await context.newPage();
    await page.goto(`${server.admin}/catalog`, { waitUntil: 'networkidle' });
    writeFileSync(path.join(images, `console-${colorScheme}.webp`), await webp(browser, await page.screenshot()));
    await context.close();
  }
} finally {
  await browser.close();
  await server.stop();
}
