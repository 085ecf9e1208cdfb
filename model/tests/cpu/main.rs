//! Tests of whole models on the CPU, plain and fast, against reference results.

mod budgets;
#[path = "../common/mod.rs"]
mod common;
mod drafts;
mod refusals;
mod several_files;
mod small_memory;
#[path = "../common/split.rs"]
mod split;
mod stages;

use std::rc::Rc;

use backend_api::Backend;
use reference_cpu::{Cpu, Options};

/// Models with each kind of state.
const SAVED: [&str; 8] = [
    "gpt2-tiny",
    "llama-gqa-tied",
    "phi3-longrope",
    "gemma3n-2l",
    "lfm2-tiny",
    "falcon-h1-tiny",
    "qwen35-tiny",
    "mamba-tiny",
];

fn cpu(fast: bool) -> Rc<dyn Backend> {
    Rc::new(Cpu::new(Options { fast, ..Default::default() }))
}

macro_rules! fixtures {
    ($($test:ident = $file:literal),+ $(,)?) => {
        $(#[test]
        fn $test() {
            common::fixture($file, cpu(false));
            common::fixture($file, cpu(true));
        })+

        /// Bit-exact tests in stages.
        mod in_stages {
            $(#[test]
            fn $test() {
                super::common::stages($file, &super::cpu(false), 0.0);
                super::common::stages($file, &super::cpu(true), 0.0);
            })+
        }
    };
}

fixtures! {
    gpt2 = "gpt2-tiny",
    llama_grouped_queries_tied = "llama-gqa-tied",
    llama_yarn = "llama-yarn4",
    llama_q4_0 = "llama-q4_0",
    llama_q8_0 = "llama-q8_0",
    llama_mixed_formats = "llama-e96-q5_0-mix",
    llama_k_formats = "llama-q4_k-mix",
    qwen2_with_biases = "qwen2-bias",
    qwen3_with_wide_heads = "qwen3-d32",
    gemma2_with_softcaps = "gemma2-swa",
    gemma3_with_windows = "gemma3-swa",
    gemma3_with_a_softcap = "gemma3-noswa-softcap",
    phi3_with_a_window_that_counts_for_nothing = "phi3-4k",
    phi3_with_factors_of_angles = "phi3-longrope",
    smollm3_without_rotation_here_and_there = "smollm3-nope",
    mistral3_with_queries_that_grow = "mistral3-yarn-temp",
    olmo2_with_norms_after_layers = "olmo2-tiny",
    granite_with_factors = "granite-scales",
    lfm2_with_convolutions = "lfm2-tiny",
    gemma3n_with_streams = "gemma3n-2l",
    gemma4_with_inputs_for_each_block = "gemma4-ple",
    gemma4_with_experts = "gemma4-experts",
    mixtral = "mixtral-4x2",
    qwen3_with_experts = "qwen3moe-8x2",
    qwen3_with_experts_q8_0 = "qwen3moe-q8_0",
    granite_with_experts_and_a_shared_one = "granitemoe-shexp",
    lfm2_with_experts = "lfm2moe-sigmoid",
    gpt_oss = "gpt-oss-f32",
    gpt_oss_mxfp4 = "gpt-oss-mxfp4",
    mamba_with_a_pace_a_channel = "mamba-tiny",
    mamba2_with_groups = "mamba2-g2",
    granite_hybrid_with_blocks_that_scan = "granitehybrid-tiny",
    falcon_h1_with_both_in_a_block = "falcon-h1-tiny",
    qwen35_with_delta_nets = "qwen35-tiny",
    qwen3_next_with_experts = "qwen3next-tiny",
    // This is the same model with the head order and the tensor layout of early Qwen3-Next files.
    qwen3_next_with_rows_that_are_dealt = "qwen3next-dense-old",
}

#[test]
fn families_of_one_page() {
    common::families(&cpu(false));
    common::families(&cpu(true));
}

#[test]
fn families_of_one_page_in_stages() {
    let at_once = ["families/dream-tied", "families/llada-untied"];
    for name in common::names_of_families().iter().filter(|name| !at_once.contains(&name.as_str())) {
        common::stages(name, &cpu(false), 0.0);
        common::stages(name, &cpu(true), 0.0);
    }
}

macro_rules! embeddings {
    ($($test:ident = $file:literal),+ $(,)?) => {
        mod embeddings {
            $(#[test]
            fn $test() {
                super::common::embedding($file, &super::cpu(false));
                super::common::embedding($file, &super::cpu(true));
            })+
        }
    };
}

embeddings! {
    bert_by_the_mean = "bert-mean",
    bert_by_the_first_token = "bert-cls-fused",
    bert_q8_0 = "bert-q8_0",
    nomic_bert = "nomic-bert-mean",
    modern_bert = "modern-bert-mean",
    gemma_with_projections = "gemma-embedding-dense",
    qwen3_by_the_last_token = "qwen3-embed-last",
}

#[test]
fn encoders_and_rerankers() {
    common::encoders(&cpu(false));
    common::encoders(&cpu(true));
}

#[test]
fn embeddings_of_one_text_after_another() {
    common::embedding_again("lfm2-tiny", &cpu(false));
    common::embedding_again("lfm2-tiny", &cpu(true));
}

#[test]
fn caches_that_grow() {
    for backend in [cpu(false), cpu(true)] {
        SAVED.iter().for_each(|name| common::growing(name, "f32", &backend));
        ["f16", "q8_0"].iter().for_each(|kv_cache| common::growing("qwen3-d32", kv_cache, &backend));
    }
}

#[test]
fn caches_in_codecs() {
    common::codecs("qwen3-d32", cpu(false));
    common::codecs("qwen3-d32", cpu(true));
}

/// Runs only on the fast CPU backend: the plain one would take minutes.
#[test]
fn minilm() {
    common::minilm(&cpu(true));
}

#[test]
fn texts_that_share_programs() {
    for backend in [cpu(false), cpu(true)] {
        common::batch("gpt2-tiny", "f32", 5, &backend);
        for name in ["lfm2-tiny", "mamba-tiny", "mamba2-g2", "qwen35-tiny", "falcon-h1-tiny"] {
            common::batch(name, "f32", 5, &backend);
        }
        for name in ["deepseek2-v3", "nemotron-h-moe-8x3", "jamba-4l", "plamo2-4l"] {
            common::batch(&format!("families/{name}"), "f32", 5, &backend);
        }
        common::states_apart(&*backend);
        common::requests_together("qwen35-tiny", &backend);
        common::prompt_beside("gpt2-tiny", &backend);
        common::prompt_rows_beside("gpt2-tiny", &backend);
        common::compiled_ahead("gpt2-tiny", &backend);
        common::prompt_rows_beside("qwen35-tiny", &backend);
        common::room("gpt2-tiny", &backend);
        common::room("qwen35-tiny", &backend);
        common::requests_together("gpt2-tiny", &backend);
        common::drafts_beside("gpt2-tiny", &backend);
        common::sequences("gpt2-tiny", &backend);
        common::sequences("qwen3-d32", &backend);
    }
}

#[test]
fn texts_that_go_back_to_a_prompt() {
    for backend in [cpu(false), cpu(true)] {
        common::again("lfm2-tiny", &backend);
        common::again("falcon-h1-tiny", &backend);
        common::again("qwen35-tiny", &backend);
    }
}

#[test]
fn texts_that_are_saved_in_the_middle() {
    for backend in [cpu(false), cpu(true)] {
        SAVED.iter().for_each(|name| common::saved(name, "f32", &backend));
        ["f16", "q8_0"].iter().for_each(|kv_cache| common::saved("qwen3-d32", kv_cache, &backend));
    }
}

#[test]
fn texts_that_take_turns() {
    for backend in [cpu(false), cpu(true)] {
        SAVED.iter().for_each(|name| common::turns(name, &backend));
        ["llama-gqa-tied", "lfm2-tiny"].iter().for_each(|name| budgets::budgets(name, &backend));
    }
}

#[test]
fn texts_that_are_saved_while_they_are_generated() {
    for backend in [cpu(false), cpu(true)] {
        SAVED.iter().for_each(|name| common::saving(name, &backend));
    }
}

#[test]
fn texts_that_outgrow_the_context() {
    for backend in [cpu(false), cpu(true)] {
        common::overflows("llama-gqa-tied", &backend);
        ["llama-gqa-tied", "gemma3-swa", "lfm2-tiny", "mamba-tiny", "qwen35-tiny"]
            .iter()
            .for_each(|name| common::shift(name, &backend, 1));
    }
}

#[test]
fn states_that_steps_rewrite() {
    common::convolution(&*cpu(false));
    common::convolution(&*cpu(true));
}

/// Runs a few tokens: the plain CPU backend takes a second for each.
#[test]
fn gab_plain() {
    common::gab(cpu(false), 6);
}

#[test]
fn gab_fast() {
    common::gab(cpu(true), 64);
}

/// Runs only on the fast CPU backend: the plain one would take minutes.
#[test]
fn smollm2() {
    common::smollm2(cpu(true), usize::MAX);
}

/// Tests a larger real model.
#[test]
fn gemma3_270m() {
    common::gemma3(cpu(true), usize::MAX);
}
