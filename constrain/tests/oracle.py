"""Checks random answers to many schemas with Python's jsonschema: generated schemas, and those of JSON Schema's own tests.

Not a part of the tests that run by themselves. From the root of the project:

    pip install --target DIR jsonschema==4.25.1
    pip download --no-deps --no-binary :all: --dest DIR jsonschema==4.25.1 && tar -C DIR -xzf DIR/jsonschema-4.25.1.tar.gz
    PYTHONPATH=DIR python3 constrain/tests/oracle.py DIR/jsonschema-4.25.1/json/tests/draft2020-12 [SCHEMAS [SEED]]
"""

import json
import pathlib
import random
import subprocess
import sys

from jsonschema import Draft202012Validator

PATTERNS = [
    '^[^"]*$', r"^[^\\]+$", r'[^"a]', r"^\d{3}-\d{2}$", r"^\w+$", r"^\W$", r"^\s*\S+$", "a|b$", "^(yes|no)!?$", r"^[^\w]{1,3}$",
    r"^(\"|\\){2}$", "x", "^.{2,4}$", "^[a-z]{2,5}$", r"^[^\s]*$", "^ä+🐟?$", r"^\D{1,4}$", r"^[\]\[-]+$", r"^a?[^0-9]$",
]
KEYS = ["a", "b", "größe", 'q"', "x\n", "b\\", "id", "yes", "12"]


def value(r):
    return r.choice([None, True, 0, 5, -2.5, 1e3, "", "red", 'q"', "b\\", "\t", "🐟", [], [1, "x"], {}, {"k": [None]}, {'"': 1}])


def number(r):
    schema = {"type": r.choice(["integer", "number"])}
    least = r.choice([r.randint(-1000, 1000), r.randint(-90, 90) / 8, -1e12, 0])
    if r.random() < 0.6:
        schema[r.choice(["minimum", "exclusiveMinimum"])] = least
    if r.random() < 0.6:
        schema[r.choice(["maximum", "exclusiveMaximum"])] = least + r.choice([0, 0.5, 1, 3, 1000, 1e9])
    if r.random() < 0.3:
        schema["multipleOf"] = r.choice([1, 2, 5, 7, 0.5, 0.25, 2.5, 100])
    return schema


def string(r):
    schema = {"type": "string"}
    if r.random() < 0.6:
        schema["pattern"] = r.choice(PATTERNS)
    if r.random() < 0.4:
        schema["minLength"] = r.randint(0, 4)
    if r.random() < 0.6:
        schema["maxLength"] = r.randint(0, 9)
    if r.random() < 0.1:
        schema["format"] = r.choice(["date", "ipv4", "uuid", "color"])
    return schema


def array(r, depth):
    schema = {"type": "array", "maxItems": r.randint(0, 4)}
    if r.random() < 0.8:
        schema["items"] = part(r, depth + 1)
    if r.random() < 0.4:
        schema["prefixItems"] = [part(r, depth + 1) for _ in range(r.randint(1, 3))]
    if r.random() < 0.5:
        schema["minItems"] = r.randint(0, 4)
    return schema


def object_(r, depth):
    schema = {"type": "object", "properties": {r.choice(KEYS): part(r, depth + 1) for _ in range(r.randint(0, 4))}}
    names = list(schema["properties"])
    if r.random() < 0.7:
        schema["required"] = sorted({*r.sample(names, r.randint(0, len(names))), *r.choice([[], [], [], ["id"]])})
    if r.random() < 0.4:
        schema["additionalProperties"] = r.choice([False, True, part(r, depth + 1)])
    if r.random() < 0.3:
        schema["patternProperties"] = {r.choice(PATTERNS): part(r, depth + 1) for _ in range(r.randint(1, 2))}
    if r.random() < 0.2:
        schema["maxProperties"] = r.randint(1, 5)
    if r.random() < 0.15:
        schema["minProperties"] = r.randint(0, 2)
    return schema


def part(r, depth=0):
    kind = r.random()
    if depth >= 3 or kind < 0.4:
        simple = [
            lambda: number(r), lambda: string(r), lambda: {"type": r.choice(["null", "boolean"])}, lambda: {"const": value(r)},
            lambda: {"enum": [value(r) for _ in range(r.randint(1, 4))]}, lambda: {"type": ["string", "null", "integer"]},
            lambda: {"$ref": "#/$defs/part"}, lambda: r.choice([True, False, {"type": "string", "maxLength": 3}]),
        ]
        return r.choice(simple)()
    if kind < 0.55:
        return array(r, depth)
    if kind < 0.8:
        return object_(r, depth)
    schema = {r.choice(["anyOf", "anyOf", "oneOf", "allOf"]): [part(r, depth + 1) for _ in range(r.randint(1, 3))]}
    if r.random() < 0.3:
        schema = {**object_(r, depth + 1), **schema}
    return schema


def suite(folder):
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        for case in json.loads(file.read_text()):
            yield case["schema"], [(test["data"], test["valid"]) for test in case["tests"]]


def main(folder, count="400", seed="1"):
    cases = [(schema, tests) for schema, tests in suite(folder) if isinstance(schema, (dict, bool))]
    own = []
    for at in range(int(count)):
        r = random.Random(f"{seed} {at}")
        top = r.choice([lambda: object_(r, 0), lambda: array(r, 0), lambda: part(r)])()
        own.append(({"$defs": {"part": part(r, 2)}, **(top if isinstance(top, dict) else {})}, []))
    cases += own
    lines = []
    for schema, tests in cases:
        texts = [json.dumps(data, ensure_ascii=False, separators=(",", ":")) for data, _ in tests]
        lines.append(json.dumps({"schema": schema, "texts": texts}))
    command = ["cargo", "run", "--release", "-q", "-p", "anygpu-constrain", "--example", "answers"]
    out = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    counts = dict.fromkeys(["schemas", "refused", "answers", "unfinished", "valid texts", "allowed", "faults"], 0)

    def fault(what, schema, *more):
        counts["faults"] += 1
        print(what, json.dumps(schema, ensure_ascii=False), *more)

    refused = {}
    for (schema, tests), line in zip(cases, out.stdout.removesuffix("\n").split("\n"), strict=True):
        told = json.loads(line)
        counts["schemas"] += 1
        if "refused" in told:
            counts["refused"] += 1
            why = told["refused"]
            refused[why] = refused.get(why, 0) + 1
            continue
        validator = Draft202012Validator(schema)
        for answer in told["answers"]:
            counts["answers"] += 1
            if "failed" in answer:
                fault("failed", schema, answer["failed"])
            elif not answer["ended"]:
                counts["unfinished"] += 1
            else:
                try:
                    wrong = next(validator.iter_errors(json.loads(answer["text"])), None)
                except json.JSONDecodeError as error:
                    wrong = error
                if wrong:
                    fault("wrong", schema, repr(answer["text"]), getattr(wrong, "message", wrong))
        for (data, valid), allowed in zip(tests, told["allowed"], strict=True):
            counts["valid texts"] += valid
            counts["allowed"] += valid and allowed
            if allowed and not valid:
                fault("allowed", schema, json.dumps(data))
    for why, times in sorted(refused.items(), key=lambda item: -item[1]):
        print(f"refused {times}: {why}")
    print(counts)
    sys.exit(counts["faults"] > 0)


main(*sys.argv[1:])
