//! Tests of whole models on every backend against reference results, one test for each backend and model.
//!
//! A backend whose driver is absent fails, unless the environment variable `ANYGPU_SKIP` names it (`webgpu`, `webgl`,
//! separated by commas): skipped tests must be explicit.

// The tests of the model's own package use this name.
extern crate model as anygpu_model;

#[path = "../../model/tests/common/mod.rs"]
mod common;

use std::rc::Rc;

use anygpu::native::block_on;
use anygpu_model::Seam;
use backend_api::{Backend, Error};
use reference_cpu::Cpu;

/// Opens a backend for a test; nothing if it is to be skipped.
fn open<B: Backend + 'static>(name: &str, backend: impl FnOnce() -> Result<B, Error>) -> Option<Rc<dyn Backend>> {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    if skip.split(',').any(|s| s.trim() == name) {
        println!("SKIPPED: ANYGPU_SKIP names {name}");
        return None;
    }
    match backend() {
        Ok(backend) => Some(Rc::new(backend)),
        Err(e) => panic!("{e}; or skip it with ANYGPU_SKIP={name}"),
    }
}

fn webgpu(max_binding: Option<u64>) -> Option<Rc<dyn Backend>> {
    let options = backend_webgpu::Options { max_binding, ..Default::default() };
    open("webgpu", || block_on(backend_webgpu::WebGpu::open(options)))
}

fn webgl(layout: backend_webgl::Layout, max_texture_size: Option<u32>) -> Option<Rc<dyn Backend>> {
    open("webgl", || {
        backend_webgl::WebGl::open(backend_webgl::Options { layout, max_texture_size, ..Default::default() })
    })
}

/// States so small that a GPU cannot bind those of one sequence are refused, and the error says so. The CPU takes them.
fn small_states(name: &str, backend: &Rc<dyn Backend>) {
    let model = common::load(common::models(&format!("fixtures/{name}.gguf")), None, backend.clone());
    let (batch, info) = (anygpu_model::Batch::new(model, 2), backend.info());
    if info.name == "cpu" {
        return drop(batch.unwrap());
    }
    let why = batch.err().unwrap().to_string();
    let expected = if info.batch_rows == 1 { "cannot advance together" } else { "not at a multiple of" };
    assert!(why.contains(expected), "{why}");
}

/// Drafts by a draft model, on WebGPU: the model's own tests cover the CPU, and WebGL makes no drafts.
#[test]
fn texts_that_a_small_model_drafts() {
    if let Some(backend) = webgpu(None) {
        common::drafts_by_model(&backend, true, false);
    }
}

macro_rules! backends {
    ($($name:ident = $open:expr, $gab:expr, $smollm2:expr, $gemma3:expr;)+) => {
        $(mod $name {
            use super::*;

            fn fixture(file: &str) {
                if let Some(backend) = $open {
                    common::fixture(file, backend);
                }
            }

            fn embedding(file: &str) {
                if let Some(backend) = $open {
                    common::embedding(file, &backend);
                }
            }

            #[test]
            fn gpt2() {
                fixture("gpt2-tiny");
            }

            #[test]
            fn llama_grouped_queries_tied() {
                fixture("llama-gqa-tied");
            }

            #[test]
            fn llama_yarn() {
                fixture("llama-yarn4");
            }

            #[test]
            fn llama_q4_0() {
                fixture("llama-q4_0");
            }

            #[test]
            fn llama_q8_0() {
                fixture("llama-q8_0");
            }

            #[test]
            fn llama_mixed_formats() {
                fixture("llama-e96-q5_0-mix");
            }

            #[test]
            fn llama_k_formats() {
                fixture("llama-q4_k-mix");
            }

            #[test]
            fn qwen2_with_biases() {
                fixture("qwen2-bias");
            }

            #[test]
            fn qwen3_with_norms_of_heads() {
                fixture("qwen3-d32");
            }

            #[test]
            fn gemma2_with_windows_and_soft_caps() {
                fixture("gemma2-swa");
            }

            #[test]
            fn gemma3_with_windows_and_two_rotations() {
                fixture("gemma3-swa");
                fixture("gemma3-noswa-softcap");
            }

            #[test]
            fn gemma3n_with_streams() {
                fixture("gemma3n-2l");
            }

            #[test]
            fn gemma4_with_inputs_for_each_block() {
                fixture("gemma4-ple");
                fixture("gemma4-experts");
            }

            #[test]
            fn bert() {
                embedding("bert-mean");
                embedding("bert-cls-fused");
                embedding("bert-q8_0");
            }

            #[test]
            fn nomic_bert_with_rotation() {
                embedding("nomic-bert-mean");
            }

            #[test]
            fn modern_bert_with_windows() {
                embedding("modern-bert-mean");
            }

            #[test]
            fn gemma_embedding_with_projections() {
                embedding("gemma-embedding-dense");
            }

            #[test]
            fn qwen3_as_an_embedder() {
                embedding("qwen3-embed-last");
            }

            #[test]
            fn minilm() {
                if let Some(backend) = $open {
                    common::minilm(&backend);
                }
            }

            #[test]
            fn phi3_with_fused_projections_and_two_lists_of_factors() {
                fixture("phi3-4k");
                fixture("phi3-longrope");
            }

            #[test]
            fn smollm3_without_rotation_here_and_there() {
                fixture("smollm3-nope");
            }

            #[test]
            fn mistral3_with_queries_that_grow() {
                fixture("mistral3-yarn-temp");
            }

            #[test]
            fn olmo2_with_norms_after_layers() {
                fixture("olmo2-tiny");
            }

            #[test]
            fn granite_with_factors() {
                fixture("granite-scales");
            }

            #[test]
            fn lfm2_with_convolutions() {
                fixture("lfm2-tiny");
                if let Some(backend) = $open {
                    common::embedding_again("lfm2-tiny", &backend);
                }
            }

            #[test]
            fn mixtral() {
                fixture("mixtral-4x2");
            }

            #[test]
            fn qwen3_with_experts() {
                fixture("qwen3moe-8x2");
                fixture("qwen3moe-q8_0");
            }

            #[test]
            fn granite_with_experts_and_a_shared_one() {
                fixture("granitemoe-shexp");
            }

            #[test]
            fn lfm2_with_experts() {
                fixture("lfm2moe-sigmoid");
            }

            #[test]
            fn gpt_oss_with_sinks_and_biases() {
                fixture("gpt-oss-f32");
                fixture("gpt-oss-mxfp4");
            }

            #[test]
            fn mamba_with_states() {
                fixture("mamba-tiny");
                fixture("mamba2-g2");
            }

            #[test]
            fn hybrids_that_scan_and_attend() {
                fixture("granitehybrid-tiny");
                fixture("falcon-h1-tiny");
            }

            #[test]
            fn qwen35_with_delta_nets() {
                fixture("qwen35-tiny");
                fixture("qwen3next-tiny");
                fixture("qwen3next-dense-old");
            }

            #[test]
            fn caches_in_codecs() {
                if let Some(backend) = $open {
                    common::codecs("qwen3-d32", backend);
                }
            }

            #[test]
            fn texts_that_are_drafted() {
                // Other backends make no drafts.
                let Some(backend) = $open.filter(|backend| backend.info().verify_rows > 1) else { return };
                let mut saved = common::drafts("qwen3-d32", "f16", &backend, &[7]);
                for name in ["gpt2-tiny", "gemma2-swa", "gpt-oss-mxfp4"] {
                    saved += common::drafts(name, "f32", &backend, &[7]);
                }
                assert!(saved > 0, "no steps saved");
            }

            #[test]
            fn caches_that_grow() {
                if let Some(backend) = $open {
                    common::growing("llama-gqa-tied", "f32", &backend);
                    common::growing("qwen3-d32", "f16", &backend);
                    common::growing("qwen3-d32", "q8_0", &backend);
                    common::growing("gemma3-swa", "f32", &backend);
                    common::growing("lfm2-tiny", "f32", &backend);
                }
            }

            #[test]
            fn in_stages() {
                if let Some(backend) = $open {
                    common::stages("gpt2-tiny", &backend, 1e-9);
                    common::stages("llama-gqa-tied", &backend, 1e-9);
                    common::stages("qwen2-bias", &backend, 1e-9);
                    common::stages("qwen3-d32", &backend, 1e-9);
                    common::stages("gemma3-swa", &backend, 1e-9);
                    common::stages("gemma3n-2l", &backend, 1e-9);
                    common::stages("gemma4-ple", &backend, 1e-9);
                    common::stages("phi3-longrope", &backend, 1e-9);
                    common::stages("lfm2-tiny", &backend, 1e-9);
                    common::stages("mistral3-yarn-temp", &backend, 1e-9);
                    common::stages("olmo2-tiny", &backend, 1e-9);
                    common::stages("granite-scales", &backend, 1e-9);
                    common::stages("lfm2moe-sigmoid", &backend, 1e-9);
                    common::stages("gpt-oss-mxfp4", &backend, 1e-9);
                    common::stages("mamba2-g2", &backend, 1e-9);
                    common::stages("falcon-h1-tiny", &backend, 1e-9);
                    common::stages("qwen35-tiny", &backend, 1e-9);
                }
            }

            #[test]
            fn chains_of_stages() {
                let Some(backend) = $open else { return };
                let plain: Rc<dyn Backend> = Rc::new(Cpu::new(Default::default()));
                common::chain("lfm2-tiny", std::slice::from_ref(&backend), 4, false);
                common::back("lfm2-tiny", &backend);
                // Stages are mixed, and taken over by another backend.
                let mixed = [backend.clone(), plain.clone()];
                common::chain("qwen3-d32", &mixed, 4, false);
                common::lost("llama-gqa-tied", Seam::F16, &mixed, &plain, 6);
                common::lost("gemma2-swa", Seam::F32, &[plain], &backend, 6);
            }

            #[test]
            fn texts_that_share_programs() {
                if let Some(backend) = $open {
                    common::sequences("qwen3-d32", &backend);
                }
            }

            #[test]
            fn texts_that_advance_together() {
                let Some(backend) = $open else { return };
                common::batch("gpt2-tiny", "f32", 5, &backend);
                common::batch("qwen3-d32", "f16", 12, &backend);
                common::batch("gemma3-swa", "q8_0", 5, &backend);
                common::batch("gpt-oss-mxfp4", "f32", 5, &backend);
                common::batch("families/deepseek2-v3", "f32", 5, &backend);
                common::prompt_beside("gpt2-tiny", &backend);
                common::prompt_rows_beside("gpt2-tiny", &backend);
                common::compiled_ahead("gpt2-tiny", &backend);
                common::room("qwen3-d32", &backend);
                common::requests_together("gpt2-tiny", &backend);
                common::drafts_beside("gpt2-tiny", &backend);
            }

            #[test]
            fn states_that_advance_together() {
                let Some(backend) = $open else { return };
                common::states_apart(&*backend);
                common::batch("qwen35-tiny", "f32", 5, &backend);
                common::prompt_rows_beside("qwen35-tiny", &backend);
                small_states("lfm2-tiny", &backend);
            }

            #[test]
            fn texts_that_go_back_to_a_prompt() {
                if let Some(backend) = $open {
                    common::again("lfm2-tiny", &backend);
                    common::again("falcon-h1-tiny", &backend);
                    common::again("qwen35-tiny", &backend);
                }
            }

            #[test]
            fn texts_that_outgrow_the_context() {
                if let Some(backend) = $open {
                    common::overflows("llama-gqa-tied", &backend);
                    common::shift("llama-gqa-tied", &backend, 19);
                    common::shift("gemma3-swa", &backend, 19);
                    common::shift("lfm2-tiny", &backend, 19);
                    common::shift("mamba-tiny", &backend, 19);
                }
            }

            #[test]
            fn texts_that_are_saved_in_the_middle() {
                if let Some(backend) = $open {
                    common::saved("llama-gqa-tied", "f32", &backend);
                    common::saved("gemma3n-2l", "f32", &backend);
                    common::saved("lfm2-tiny", "f32", &backend);
                    common::saved("falcon-h1-tiny", "f32", &backend);
                    common::saved("qwen35-tiny", "f32", &backend);
                    common::saved("qwen3-d32", "f16", &backend);
                    common::saved("qwen3-d32", "q8_0", &backend);
                }
            }

            #[test]
            fn texts_that_take_turns() {
                if let Some(backend) = $open {
                    common::turns("llama-gqa-tied", &backend);
                    common::turns("lfm2-tiny", &backend);
                    common::turns("mamba-tiny", &backend);
                }
            }

            #[test]
            fn texts_that_are_saved_while_they_are_generated() {
                if let Some(backend) = $open {
                    common::saving("llama-gqa-tied", &backend);
                    common::saving("lfm2-tiny", &backend);
                }
            }

            #[test]
            fn states_that_steps_rewrite() {
                if let Some(backend) = $open {
                    common::convolution(&*backend);
                }
            }

            #[test]
            fn gab() {
                if let Some(backend) = $open {
                    common::gab(backend, $gab);
                }
            }

            #[test]
            fn smollm2() {
                if let Some(backend) = $open {
                    common::smollm2(backend, $smollm2);
                }
            }

            #[test]
            fn gemma3_270m() {
                if let Some(backend) = $open {
                    common::gemma3(backend, $gemma3);
                }
            }
        })+
    };
}

// The last columns are the numbers of tokens that gab, SmolLM2 and Gemma 3 generate for each prompt: all of the
// reference's if a software device is fast enough.
backends! {
    cpu_fast = open("cpu", || Ok(Cpu::new(reference_cpu::Options { fast: true, ..Default::default() }))), 64, usize::MAX, 8;
    webgpu_native = webgpu(None), 16, 7, 2;
    webgpu_small_bindings = webgpu(Some(16 << 20)), 4, 2, 2;
    webgl_packed = webgl(backend_webgl::Layout::Packed, None), 64, 12, 7;
    webgl_r32f = webgl(backend_webgl::Layout::R32f, None), 8, 4, 2;
    webgl_bits = webgl(backend_webgl::Layout::Bits, None), 16, 4, 2;
    webgl_small_textures = webgl(backend_webgl::Layout::Packed, Some(2048)), 8, 4, 2;
}

/// Runs a model with one of `every` values of the tunables of a backend.
fn with_values<B: Backend + 'static>(name: &str, every: usize, fresh: impl Fn() -> Result<B, Error>) {
    let Ok(tunables) = fresh().map(|backend| backend.tunables()) else {
        open(name, fresh);
        return;
    };
    let values = || tunables.iter().flat_map(|t| t.values.iter().map(|value| (t.name, *value)));
    assert!(values().count() > 5, "{name} has few values");
    for (tunable, value) in values().step_by(every) {
        let tuned = || fresh().and_then(|mut backend| backend.tune(tunable, value).map(|()| backend));
        if let Some(backend) = open(name, tuned) {
            common::fixture("llama-gqa-tied", backend);
        }
    }
}

fn webgl_with_values(every: usize) {
    with_values("webgl", every, || backend_webgl::WebGl::open(Default::default()));
}

fn webgpu_with_values(every: usize) {
    with_values("webgpu", every, || block_on(backend_webgpu::WebGpu::open(Default::default())));
}

/// Families whose blocks share a page, on WebGPU and in one layout of WebGL; all layouts are for the night.
#[test]
fn families_of_one_page() {
    for backend in [webgpu(None), webgl(backend_webgl::Layout::Packed, None)].into_iter().flatten() {
        common::families(&backend);
        common::encoders(&backend);
    }
}

#[test]
#[ignore = "takes minutes; cargo xtask test --nightly runs it"]
fn families_of_one_page_in_other_layouts() {
    for layout in [backend_webgl::Layout::R32f, backend_webgl::Layout::Bits] {
        webgl(layout, None).iter().for_each(common::families);
        webgl(layout, None).iter().for_each(common::encoders);
    }
}

#[test]
fn webgl_has_the_same_results_with_a_third_of_all_values() {
    webgl_with_values(3);
}

#[test]
fn webgpu_has_the_same_results_with_a_fifth_of_all_values() {
    webgpu_with_values(5);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --nightly runs it"]
fn webgl_has_the_same_results_with_all_values() {
    webgl_with_values(1);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --nightly runs it"]
fn webgpu_has_the_same_results_with_all_values() {
    webgpu_with_values(1);
}
