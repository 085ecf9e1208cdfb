//! A model of one block with random f32 weights and a vocabulary for JSON. A step takes software a few milliseconds,
//! and all backends compute the same.

const WIDTH: u64 = 32;
const FEED_FORWARD: u64 = 64;
/// Tokens of several bytes; there is also one for each byte.
const WORDS: &str = "{\" \":\u{2581} \",\u{2581}\" \"} true false null \",\" \":\" [] {} ]} \"} yes no red one zwei \"name\" \"age\" \
                     größe tags 12 100 ,\u{2581} :\u{2581} the and ing st er an \\\" \\n <tool> \u{2581}the \u{2581}a";

/// Types of metadata, by their numbers in GGUF.
const U32: u32 = 4;
const I32: u32 = 5;
const FLOAT: u32 = 6;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

#[derive(Default)]
struct Writer {
    pairs: Vec<Vec<u8>>,
    infos: Vec<Vec<u8>>,
    data: Vec<u8>,
    random: u32,
}

impl Writer {
    fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.pairs.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
    }

    fn array(&mut self, key: &str, kind: u32, elements: &[Vec<u8>]) {
        let head = [kind.to_le_bytes().to_vec(), (elements.len() as u64).to_le_bytes().to_vec()].concat();
        self.pair(key, ARRAY, &[head, elements.concat()].concat());
    }

    /// Adds a tensor of random numbers that differ from `about` by at most `most`.
    fn tensor(&mut self, name: &str, dims: &[u64], about: f32, most: f32) {
        let dims_bytes: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        let offset = (self.data.len() as u64).to_le_bytes();
        let count = (dims.len() as u32).to_le_bytes();
        self.infos.push([&text(name)[..], &count, &dims_bytes, &0u32.to_le_bytes(), &offset].concat());
        for _ in 0..dims.iter().product() {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let unit = (self.random >> 8) as f32 / (1 << 23) as f32 - 1.0;
            self.data.extend((about + most * unit).to_le_bytes());
        }
        self.data.resize(self.data.len().next_multiple_of(32), 0);
    }

    fn bytes(self) -> Vec<u8> {
        let counts = [self.infos.len() as u64, self.pairs.len() as u64];
        let mut out = b"GGUF\x03\0\0\0".to_vec();
        out.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        out.extend([self.pairs.concat(), self.infos.concat()].concat());
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(self.data);
        out
    }
}

/// Makes the model's file.
pub fn file() -> Vec<u8> {
    let mut file = Writer { random: 7, ..Writer::default() };
    // The kinds are unknown, control, byte and normal.
    let mut tokens = vec![("<unk>".to_owned(), 2i32), ("<s>".into(), 3), ("</s>".into(), 3)];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    tokens.extend(WORDS.split(' ').filter(|word| !word.is_empty()).map(|word| (word.to_owned(), 1)));
    let count = tokens.len() as u64;
    file.pair("general.architecture", STRING, &text("llama"));
    file.pair("llama.attention.layer_norm_rms_epsilon", FLOAT, &1e-5f32.to_le_bytes());
    let numbers = [
        ("block_count", 1),
        ("embedding_length", WIDTH as u32),
        ("attention.head_count", 2),
        ("feed_forward_length", FEED_FORWARD as u32),
        ("context_length", 1024),
        ("vocab_size", count as u32),
    ];
    numbers.iter().for_each(|(key, value)| file.pair(&format!("llama.{key}"), U32, &value.to_le_bytes()));
    file.pair("tokenizer.ggml.model", STRING, &text("llama"));
    let list: Vec<_> = tokens.iter().map(|(token, _)| text(token)).collect();
    file.array("tokenizer.ggml.tokens", STRING, &list);
    let kinds: Vec<_> = tokens.iter().map(|(_, kind)| kind.to_le_bytes().to_vec()).collect();
    file.array("tokenizer.ggml.token_type", I32, &kinds);
    file.array("tokenizer.ggml.scores", FLOAT, &vec![0f32.to_le_bytes().to_vec(); tokens.len()]);
    file.tensor("token_embd.weight", &[WIDTH, count], 0.0, 1.0);
    for name in ["attn_norm", "ffn_norm"] {
        file.tensor(&format!("blk.0.{name}.weight"), &[WIDTH], 1.0, 0.1);
    }
    for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        file.tensor(&format!("blk.0.{name}.weight"), &[WIDTH, WIDTH], 0.0, 0.4);
    }
    for (name, dims) in
        [("ffn_gate", [WIDTH, FEED_FORWARD]), ("ffn_up", [WIDTH, FEED_FORWARD]), ("ffn_down", [FEED_FORWARD, WIDTH])]
    {
        file.tensor(&format!("blk.0.{name}.weight"), &dims, 0.0, 0.4);
    }
    file.tensor("output_norm.weight", &[WIDTH], 1.0, 0.1);
    file.tensor("output.weight", &[WIDTH, count], 0.0, 0.6);
    file.bytes()
}
