/** Actions and observations of a visitor, in the page's own words. */

import assert from "node:assert/strict";

/** @import { Page } from "puppeteer-core" */

/** Waits until the page says that it runs on a backend. @param {Page} page */
export const ready = (page) => seen(page, "#verdict", /^Running on/);

/** Waits until an element's text is as expected. @param {Page} page @param {string} selector @param {RegExp} text */
export const seen = (page, selector, text) =>
  page.waitForFunction(
    (/** @type {string} */ selector, /** @type {string} */ text) =>
      new RegExp(text).test(document.querySelector(selector)?.textContent ?? ""),
    {},
    selector,
    text.source,
  );

/**
 * Returns the texts of all elements that match a selector.
 *
 * @param {Page} page @param {string} selector @returns {Promise<string[]>}
 */
export const texts = (page, selector) => page.$$eval(selector, (found) => found.map(({ textContent }) => textContent ?? ""));

/** Presses the visible button with a text. @param {Page} page @param {string} text */
export async function press(page, text) {
  for (const button of await page.$$("button")) {
    const matches = await button.evaluate((node, text) => node.textContent === text && node.checkVisibility({ visibilityProperty: true }), text);
    if (matches) return button.click();
  }
  assert.fail(`there is no button that says ${text}`);
}

/** Waits until no text is being generated. @param {Page} page */
export const still = (page) => page.waitForFunction(() => document.querySelector('main [aria-busy="true"]') === null);
