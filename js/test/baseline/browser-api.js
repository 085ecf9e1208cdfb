/**
 * An ESLint rule that refuses globals, and members of interfaces, that one of the oldest browsers lacks according to
 * MDN's data.
 *
 * JavaScript does not know types, so members are judged by their names: one is refused if no interface with such a
 * member was in all of these browsers.
 */

import { createRequire } from "node:module";
import { FLOOR } from "./floor.js";

const data = createRequire(import.meta.url)("@mdn/browser-compat-data");

/** Whether a browser of this version has a feature, by one of the data's statements. */
function has(statement, floor) {
  const { version_added, version_removed, flags, prefix, alternative_name, partial_implementation } = statement;
  if (flags || prefix || alternative_name || partial_implementation) return false;
  const from = parseFloat(String(version_added).replace("≤", ""));
  const until = version_removed === undefined ? Infinity : parseFloat(String(version_removed).replace("≤", ""));
  return from <= floor && floor < until;
}

function isOld({ support }) {
  return Object.entries(FLOOR).every(([browser, floor]) => [support[browser]].flat().some((s) => s && has(s, floor)));
}

/** Known names, and for each whether all of the oldest browsers have it on some interface. */
const globals = new Map();
const members = new Map();

function note(names, name, { __compat }) {
  if (__compat) names.set(name, names.get(name) || isOld(__compat));
}

for (const group of [data.api, data.javascript.builtins, data.webassembly.api]) {
  for (const [title, entry] of Object.entries(group)) {
    note(globals, title, entry);
    for (const [member, below] of Object.entries(entry)) {
      // Other names with an underscore are not members but events, and remarks such as "worker_support".
      const name = member.replace(/_static$/, "");
      if (!name.includes("_")) note(members, name, below);
    }
  }
}
// Members of these interfaces are globals in scripts.
for (const scope of ["Window", "WindowOrWorkerGlobalScope", "WorkerGlobalScope"]) {
  for (const [name, entry] of Object.entries(data.api[scope] ?? {})) note(globals, name, entry);
}

const isYoung = (names, name) => names.get(name) === false;

export default {
  meta: {
    type: "problem",
    schema: [{ type: "object", properties: { allowed: { type: "array", items: { type: "string" } } } }],
    messages: { young: "{{name}} is younger than the oldest browsers ({{floor}})" },
  },
  defaultOptions: [{ allowed: [] }],
  create(context) {
    const allowed = new Set(context.options[0].allowed);
    const floor = Object.entries(FLOOR).map((pair) => pair.join(" ")).join(", ");
    const refuse = (node, name) => {
      if (!allowed.has(name)) context.report({ node, messageId: "young", data: { name, floor } });
    };
    return {
      MemberExpression({ property, computed }) {
        if (!computed && isYoung(members, property.name)) refuse(property, property.name);
      },
      "ObjectPattern > Property"({ key, computed }) {
        if (!computed && isYoung(members, key.name)) refuse(key, key.name);
      },
      "Program:exit"(program) {
        const { through } = context.sourceCode.getScope(program);
        for (const { identifier } of through) {
          if (isYoung(globals, identifier.name)) refuse(identifier, identifier.name);
        }
      },
    };
  },
};
