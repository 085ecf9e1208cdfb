//! Files of models with recurrent states.

use super::{ARRAY, BOOL, Header, Sizes, Writer};

/// Names of the families.
pub const FAMILIES: &[&str] = &["mamba", "mamba2", "granitehybrid", "falcon-h1", "qwen35"];
/// State size of a channel, and width of a key.
const STATE: u64 = 64;
/// Number of heads of the scan, and of the delta net.
const HEADS: u64 = 8;

/// Makes a model of a family with recurrent states. In hybrid families, the first block has attention.
pub fn model(family: &'static str, sizes: &Sizes) -> Header {
    let Sizes { blocks, width, heads, heads_kv, feed_forward, vocabulary } = *sizes;
    let (inner, kv, head) = (2 * width, width / heads * heads_kv, width / heads);
    let mut file = Writer::new(family, sizes);
    let (attends_alone, delta) = (matches!(family, "granitehybrid" | "qwen35"), family == "qwen35");
    if family == "granitehybrid" {
        file.numbers("attention.head_count_kv", &(0..blocks).map(|i| if i == 0 { 4 } else { 0 }).collect::<Vec<_>>());
    } else {
        file.number("attention.head_count_kv", heads_kv as u32);
    }
    let rank = if family == "mamba" { 32 } else { HEADS as u32 };
    for (key, value) in [
        ("ssm.conv_kernel", 4),
        ("ssm.inner_size", inner as u32),
        ("ssm.state_size", STATE as u32),
        ("ssm.time_step_rank", rank),
        ("ssm.group_count", if delta { HEADS as u32 / 2 } else { 1 }),
    ] {
        file.number(key, value);
    }
    if delta {
        let recurrent: Vec<u8> = (0..blocks).map(|i| u8::from(i != 0)).collect();
        let head = [BOOL.to_le_bytes().as_slice(), &u64::from(blocks).to_le_bytes()].concat();
        file.pair("qwen35.attention.recurrent_layers", ARRAY, &[head, recurrent].concat());
    }
    file.tensor("token_embd", &[width, vocabulary]);
    for i in 0..blocks {
        let name = |part: &str| format!("blk.{i}.{part}");
        file.tensor(&name("attn_norm"), &[width]);
        if attends_alone && i == 0 || family == "falcon-h1" {
            file.tensor(&name("attn_q"), &[width, if delta { 2 * width } else { width }]);
            for (part, rows) in [("attn_k", kv), ("attn_v", kv), ("attn_output", width)] {
                file.tensor(&name(part), &[width, rows]);
            }
        }
        if delta && i == 0 {
            ["attn_q_norm", "attn_k_norm"].iter().for_each(|norm| file.tensor(&name(norm), &[head]));
        }
        let convolved = match family {
            "mamba" => inner,
            "qwen35" => inner + HEADS * STATE,
            _ => inner + 2 * STATE,
        };
        if !(attends_alone && i == 0) {
            file.tensor(&name("ssm_conv1d"), &[4, convolved]);
            file.tensor(&name("ssm_out"), &[inner, width]);
            if !delta {
                file.floats(&name("ssm_conv1d.bias"), &[convolved]);
            }
            match family {
                "mamba" => {
                    file.tensor(&name("ssm_in"), &[width, 2 * inner]);
                    file.tensor(&name("ssm_x"), &[inner, 32 + 2 * STATE]);
                    file.tensor(&name("ssm_dt"), &[32, inner]);
                    file.floats(&name("ssm_dt.bias"), &[inner]);
                    file.floats(&name("ssm_a"), &[STATE, inner]);
                    file.floats(&name("ssm_d"), &[inner]);
                }
                "qwen35" => {
                    file.tensor(&name("attn_qkv"), &[width, convolved]);
                    file.tensor(&name("attn_gate"), &[width, inner]);
                    ["ssm_beta", "ssm_alpha"].iter().for_each(|part| file.tensor(&name(part), &[width, HEADS]));
                    ["ssm_a", "ssm_dt.bias"].iter().for_each(|part| file.floats(&name(part), &[HEADS]));
                    file.tensor(&name("ssm_norm"), &[inner / HEADS]);
                }
                _ => {
                    file.tensor(&name("ssm_in"), &[width, 2 * inner + 2 * STATE + HEADS]);
                    file.floats(&name("ssm_dt.bias"), &[HEADS]);
                    ["ssm_a", "ssm_d"].iter().for_each(|part| file.floats(&name(part), &[1, HEADS]));
                    if family != "falcon-h1" {
                        file.floats(&name("ssm_norm.weight"), &[inner, 1]);
                    }
                }
            }
        }
        if !family.starts_with("mamba") {
            match family {
                "falcon-h1" => file.floats(&name("ffn_norm"), &[width]),
                "qwen35" => file.tensor(&name("post_attention_norm"), &[width]),
                _ => file.tensor(&name("ffn_norm"), &[width]),
            }
            ["ffn_gate", "ffn_up"].iter().for_each(|part| file.tensor(&name(part), &[width, feed_forward]));
            file.tensor(&name("ffn_down"), &[feed_forward, width]);
        }
    }
    file.tensor("output_norm", &[width]);
    file.tensor("output", &[width, vocabulary]);
    file.header()
}
