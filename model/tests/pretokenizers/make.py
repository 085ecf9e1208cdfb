"""How publishers' own expressions cut the texts of splits.txt, in bytes: writes it anew.

    pip install tokenizers==0.23.3
    python model/tests/pretokenizers/make.py

Texts are JSON strings, so that control characters can be read; below each are the lengths of its pieces. The expressions are those of the publishers'
`tokenizer.json`; those of gpt-4o and tekken also lie in the packages `tiktoken` and `mistral-common`.
"""

import json
from pathlib import Path

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Sequence, Split

HERE = Path(__file__).parent
LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
REST_WITH_SLASHES = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORDS = [rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALL}+", rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALL}*"]
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

EXPRESSIONS = {
    "llama-bpe": LETTERS + r"\p{N}{1,3}" + REST,
    "qwen2": LETTERS + r"\p{N}" + REST,
    "qwen35": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "gpt-4o": "|".join(word + CONTRACTION for word in WORDS) + r"|\p{N}{1,3}" + REST_WITH_SLASHES,
    "tekken": "|".join(WORDS) + r"|\p{N}" + REST_WITH_SLASHES,
}


def byte_level(use_regex):
    return ByteLevel(add_prefix_space=False, use_regex=use_regex)


# Each ends with bytes as characters, so that the characters of a piece are its bytes.
PRETOKENIZERS = {
    "gpt-2": byte_level(True),
    "smollm": Sequence([Digits(individual_digits=True), byte_level(True)]),
    "falcon": Sequence([
        Punctuation("contiguous"), byte_level(True), Digits(individual_digits=False),
        Split(Regex("[0-9][0-9][0-9]"), "isolated"),
    ]),
    **{name: Sequence([Split(Regex(e), "isolated"), byte_level(False)]) for name, e in EXPRESSIONS.items()},
}  # fmt: skip


def splits(text):
    """Pre-tokenizers by the lengths of the pieces that they make of a text."""
    found = {}
    for name, pre in PRETOKENIZERS.items():
        lengths = " ".join(str(len(piece)) for piece, _ in pre.pre_tokenize_str(text))
        found.setdefault(lengths, []).append(name)
    return found


def main():
    lines, file = [], HERE / "splits.txt"
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.startswith('"'):
            continue
        lines.append(line)
        lines += [f"{' '.join(names)}: {lengths}" for lengths, names in splits(json.loads(line)).items()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
