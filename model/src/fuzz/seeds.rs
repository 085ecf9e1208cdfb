//! Valid seed files.

use crate::gguf::writer::{Writer, string};

/// Makes small valid files. Together they have every value type, both tokenizers, templates and tensors.
pub fn seeds() -> Vec<Vec<u8>> {
    let strings = |list: &[&str]| list.iter().flat_map(|s| string(s.as_bytes())).collect::<Vec<u8>>();
    let ints = |list: &[i32]| list.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |list: &[f32]| list.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<u8>>();

    let tokens = ["<|im_end|>", "a", "b", "ab", "\u{120}", "\u{120}ab", "t", "i", "m", "e", "O", "n", "c", "2", "0"];
    let bpe = Writer::default()
        .pair("general.architecture", 8, &string(b"gpt2"))
        .pair("general.alignment", 4, &32u32.to_le_bytes())
        .pair("tokenizer.ggml.model", 8, &string(b"gpt2"))
        .pair("tokenizer.ggml.pre", 8, &string(b"gpt-2"))
        .array("tokenizer.ggml.tokens", 8, 15, &strings(&tokens))
        .array("tokenizer.ggml.token_type", 5, 15, &ints(&[3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4]))
        .array("tokenizer.ggml.merges", 8, 3, &strings(&["a b", "\u{120} ab", "t i"]))
        .pair("tokenizer.ggml.eos_token_id", 4, &0u32.to_le_bytes())
        .pair("tokenizer.ggml.add_bos_token", 7, &[0])
        .pair(
            "tokenizer.chat_template",
            8,
            &string(
                b"{%- for m in messages[::-1] %}{% if loop.first %}{{ m|tojson }}{% endif %}\
                  {{ m['role'].strip() + '\\n' + m.content | trim }}{% endfor %}{{ bos_token }}",
            ),
        )
        .tensor("token_embd.weight", &[32, 3], 2, 0)
        .tensor("output_norm.weight", &[8], 0, 64)
        .data(96);

    let spm = Writer::default()
        .pair("general.name", 8, &string(b"Phi-3"))
        .pair("tokenizer.ggml.model", 8, &string(b"llama"))
        .array("tokenizer.ggml.tokens", 8, 7, &strings(&["<unk>", "<s>", "</s>", "\u{2581}", "a", "ab", "<0x62>"]))
        .array("tokenizer.ggml.scores", 6, 7, &floats(&[0.0, 0.0, 0.0, -1.0, -2.0, -3.0, 0.0]))
        .array("tokenizer.ggml.token_type", 5, 7, &ints(&[2, 3, 3, 1, 1, 1, 6]))
        .pair("a.i64", 11, &(-1i64).to_le_bytes())
        .pair("a.f64", 12, &1f64.to_le_bytes())
        .array("a.u16", 2, 2, &[1, 0, 2, 0])
        .array("a.i64s", 11, 1, &[255; 8])
        .array("a.bools", 7, 2, &[0, 1])
        .array("a.f64s", 12, 1, &[0; 8]);
    vec![bpe.bytes(), spm.bytes()]
}

/// Makes a file with a tokenizer and this template.
pub(super) fn with_template(template: &str) -> Vec<u8> {
    let tokens = ["<s>", "</s>", "a"].map(|token| string(token.as_bytes())).concat();
    Writer::default()
        .pair("tokenizer.ggml.model", 8, &string(b"gpt2"))
        .array("tokenizer.ggml.tokens", 8, 3, &tokens)
        .array("tokenizer.ggml.merges", 8, 0, &[])
        .pair("tokenizer.ggml.bos_token_id", 4, &0u32.to_le_bytes())
        .pair("tokenizer.chat_template", 8, &string(template.as_bytes()))
        .bytes()
}
