//! The list of test runs: those of each change, and those of a night.

use crate::browsers::Kind;
use crate::toolchain::System;

/// One command whose output states how many of its checks passed.
pub struct Run {
    pub title: &'static str,
    /// Requirement of the run.
    pub needs: Need,
    pub program: Program,
    pub args: &'static [&'static str],
}

/// Requirement of a run. Without it, the run is skipped.
#[derive(Clone, Copy)]
pub enum Need {
    /// Nothing but Rust.
    Nothing,
    /// The driver of a backend, as [`drivers`](crate::drivers) names it.
    Driver(&'static str),
    /// A processor with AVX2, which it may have beside better ones.
    Avx2,
    /// A cross compiler and an emulator for processors by Arm.
    Arm,
    /// A standard library for a system that need not be this one.
    System(System),
    /// The page.
    Page,
    /// The page, and the browser.
    Browser(Kind),
    /// The page, and all of some browsers.
    Browsers(&'static [Kind]),
    /// The page, and what old browsers are fetched with and run on.
    OldBrowser,
    /// A NATS server.
    Nats,
    /// The page, and Node.js with npm.
    Node,
    /// Node.js, without the page.
    NodeAlone,
}

/// Program that a run starts.
pub enum Program {
    Cargo,
    /// The conformance suite.
    Suite,
    /// This program, which says what it counted.
    Page,
    /// This program, for a task whose exit status is the only result.
    Task,
    Node,
}

/// A run of the conformance suite.
macro_rules! suite {
    ($title:literal, $needs:expr, $($arg:literal),+) => {
        Run {
            title: $title,
            needs: $needs,
            program: Program::Suite,
            args: &[$($arg),+],
        }
    };
}

/// A run of the arrays that others computed, on some variants.
macro_rules! vectors {
    ($title:literal, $needs:expr, $($variant:literal),+) => {
        suite!($title, $needs, "--vectors", "conformance/vectors", $("--backend", $variant),+)
    };
}

/// A run in a browser.
macro_rules! page {
    ($title:literal, $browser:ident, $backend:literal, $run:literal $(, $arg:literal)*) => {
        Run {
            title: $title,
            needs: Need::Browser(Kind::$browser),
            program: Program::Page,
            args: &["browser", "--browser", Kind::$browser.name(), "--backend", $backend, "--run", $run, "--watchdog", "240" $(, $arg)*],
        }
    };
}

/// A run in an old Chromium.
macro_rules! old {
    ($version:literal, $backend:literal, $run:literal $(, $arg:literal)*) => {
        Run {
            title: concat!("chromium ", $version, ", ", $backend, ": ", $run),
            needs: Need::OldBrowser,
            program: Program::Page,
            args: &["browser", "--browser", concat!("chromium@", $version), "--backend", $backend, "--run", $run, "--watchdog", "240" $(, $arg)*],
        }
    };
}

/// Tests of whole models (`engine/tests/models.rs`) on GPU backends. The suite runs each operator there with each change, and
/// each model runs on the CPU, so that a few models suffice on each GPU backend and layout; all others are nightly.
macro_rules! on_gpus {
    ($use:ident $(, $arg:expr)*) => {
        on_gpus!(@ $use $(, $arg)*; "webgpu_native::", "webgpu_small_bindings::", "webgl_packed::", "webgl_r32f::", "webgl_bits::",
            "webgl_small_textures::")
    };
    (@ leave_out $(, $arg:expr)*; $($layout:literal),+) => { &[$($arg,)* $("--skip", $layout),+] };
    (@ all $(, $arg:expr)*; $($layout:literal),+) => { &[$($arg,)* $($layout),+] };
    // On each layout a real model, formats and states of constant size. On one of each backend, one of each other kind: windows,
    // codecs, experts, an encoder, texts on disk; and some more on one of the two.
    (@ some $(, $arg:expr)*; $($layout:literal),+) => {
        &[$($arg,)* "--exact", $(
            concat!($layout, "gab"),
            concat!($layout, "llama_mixed_formats"),
            concat!($layout, "qwen35_with_delta_nets"),
        )+
            "webgpu_native::gemma3_with_windows_and_two_rotations",
            "webgpu_native::caches_in_codecs",
            "webgl_packed::gemma3_with_windows_and_two_rotations",
            "webgl_packed::caches_in_codecs",
            "webgpu_native::gpt_oss_with_sinks_and_biases",
            "webgpu_native::bert",
            "webgpu_native::texts_that_are_saved_in_the_middle",
            "webgl_packed::gpt_oss_with_sinks_and_biases",
            "webgl_packed::bert",
            "webgl_packed::texts_that_are_saved_in_the_middle",
            "webgpu_native::gemma3n_with_streams",
            "webgpu_native::lfm2_with_convolutions",
            "webgpu_native::hybrids_that_scan_and_attend",
            "webgpu_native::modern_bert_with_windows",
            "webgpu_native::texts_that_share_programs",
            "webgpu_native::texts_that_are_drafted",
            "webgpu_native::texts_that_advance_together",
            "webgpu_native::states_that_advance_together",
            "webgpu_native::chains_of_stages",
            "webgl_packed::gemma4_with_inputs_for_each_block",
            "webgl_packed::phi3_with_fused_projections_and_two_lists_of_factors",
            "webgl_packed::mixtral",
            "webgl_packed::mamba_with_states",
            "webgl_packed::caches_that_grow",
            "webgl_packed::in_stages",
            "webgl_packed::texts_that_outgrow_the_context",
            "webgl_packed::texts_that_go_back_to_a_prompt",
            "webgl_packed::texts_that_take_turns",
            "webgl_packed::states_that_steps_rewrite",
        ]
    };
}

pub const RUNS: &[Run] = &[
    Run {
        title: "unit and integration tests",
        needs: Need::Nothing,
        program: Program::Cargo,
        // The lines of tests that skip themselves must be seen to be counted.
        args: on_gpus!(
            leave_out,
            "test",
            "--release",
            "--workspace",
            "--exclude",
            "anygpu-viewer",
            "--no-fail-fast",
            "--",
            "--show-output"
        ),
    },
    Run {
        title: "models on GPUs",
        needs: Need::Nothing,
        program: Program::Cargo,
        args: on_gpus!(
            some,
            "test",
            "--release",
            "--workspace",
            "--exclude",
            "anygpu-viewer",
            "--test",
            "models",
            "--",
            "--show-output"
        ),
    },
    // Long ones come first, so that no processor is idle at the end.
    suite!("mutation check", Need::Nothing, "--mutate", "--share", "1/13"),
    Run {
        title: "JavaScript units",
        needs: Need::NodeAlone,
        program: Program::Node,
        args: &["js/test/run.js", "unit"],
    },
    Run {
        title: "dependencies: licences, duplicates, sources",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["supply"],
    },
    Run {
        title: "pool",
        needs: Need::Nats,
        program: Program::Page,
        // The other chains have the same backends and seams.
        args: &["pool", "--skip", "WebGPU and CPU, f16", "--skip", "SmolLM2: WebGPU, CPU, WebGL, f16"],
    },
    Run {
        title: "vectors: as onnx has them",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["vectors", "--check"],
    },
    vectors!("vectors: reference and cpu", Need::Nothing, "reference", "cpu"),
    vectors!("vectors: webgpu", Need::Driver("webgpu"), "webgpu", "webgpu-core", "webgpu-split"),
    vectors!("vectors: webgl", Need::Driver("webgl"), "webgl", "webgl-fold", "webgl-split", "webgl-r32f", "webgl-bits"),
    suite!("conformance: cpu", Need::Nothing, "--backend", "cpu", "--backend", "cpu-portable"),
    suite!("conformance: cpu, AVX2", Need::Avx2, "--backend", "cpu-avx2"),
    // Shares are by prime numbers: lists of cases repeat in twos, threes and fours.
    suite!("conformance: webgpu", Need::Driver("webgpu"), "--backend", "webgpu"),
    suite!(
        "conformance: webgpu, variants",
        Need::Driver("webgpu"),
        "--share",
        "1/11",
        "--backend",
        "webgpu-core",
        "--backend",
        "webgpu-split",
        "--backend",
        "webgpu-int8"
    ),
    suite!("conformance: webgl", Need::Driver("webgl"), "--backend", "webgl"),
    suite!(
        "conformance: webgl, variants",
        Need::Driver("webgl"),
        "--share",
        "2/13",
        "--backend",
        "webgl-fold",
        "--backend",
        "webgl-split",
        "--backend",
        "webgl-r32f",
        "--backend",
        "webgl-bits"
    ),
    suite!("llama.cpp's cases: cpu", Need::Nothing, "--peer", "small", "--backend", "cpu"),
    suite!(
        "llama.cpp's cases: webgpu",
        Need::Driver("webgpu"),
        "--peer",
        "small",
        "--share",
        "1/11",
        "--backend",
        "webgpu"
    ),
    suite!(
        "llama.cpp's cases: webgl",
        Need::Driver("webgl"),
        "--peer",
        "small",
        "--share",
        "2/11",
        "--backend",
        "webgl"
    ),
    suite!("random cases: cpu", Need::Nothing, "--random", "500", "--backend", "cpu"),
    suite!(
        "random cases: webgpu",
        Need::Driver("webgpu"),
        "--random",
        "12",
        "--backend",
        "webgpu",
        "--backend",
        "webgpu-core"
    ),
    suite!(
        "random cases: webgl",
        Need::Driver("webgl"),
        "--random",
        "10",
        "--backend",
        "webgl",
        "--backend",
        "webgl-fold",
        "--backend",
        "webgl-bits"
    ),
    Run { title: "hostile inputs", needs: Need::Nothing, program: Program::Task, args: &["fuzz", "--seconds", "30"] },
    Run {
        title: "hostile files",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["fuzz", "--through", "cpu", "--count", "300"],
    },
    // Of the runs that need the page, the longest.
    Run {
        title: "JavaScript package",
        needs: Need::Node,
        program: Program::Node,
        args: &[
            "js/test/run.js",
            "types",
            "baseline",
            "guard",
            "runtimes",
            "sdk",
            "plain",
            "offline",
            "vite",
            "webpack",
            "openai",
        ],
    },
    Run { title: "size", needs: Need::Page, program: Program::Task, args: &["size"] },
    // WebGPU in software needs a quarter of a second a token or more, so it gets one prompt. The suite runs natively on each
    // backend and in Chromium on the CPU, and a small part of it elsewhere: drivers there are the native ones. Checks that have
    // nothing to do with the GPU run on the CPU in Chromium, whose WebGL2 in software takes long to compile.
    page!("chromium, webgpu: conformance", Chromium, "webgpu", "conformance", "--every", "11"),
    page!("chromium, webgpu: gab", Chromium, "webgpu", "generate", "--prompts", "1", "--tokens", "24"),
    page!("chromium, webgpu: checks", Chromium, "webgpu", "checks", "--only", "no object,lost while generating"),
    page!("chromium, webgl: conformance", Chromium, "webgl", "conformance", "--every", "13"),
    page!("chromium, webgl: gab", Chromium, "webgl", "generate", "--prompts", "2"),
    page!("chromium, webgl: checks", Chromium, "webgl", "checks", "--only", "extension,workers"),
    page!("chromium, cpu: conformance", Chromium, "cpu", "conformance"),
    page!("chromium, cpu: gab", Chromium, "cpu", "generate"),
    page!("chromium, cpu: smollm2", Chromium, "cpu", "generate", "--model", "smollm2"),
    page!(
        "chromium, cpu: checks",
        Chromium,
        "cpu",
        "checks",
        "--only",
        "selection,generation,chances,formats,sessions,embedding,network,cache,files,object,pace,page,policy"
    ),
    page!("chromium, cpu: cycles", Chromium, "cpu", "cycles", "--cycles", "24"),
    page!("chromium, cpu, isolated: gab", Chromium, "cpu", "generate", "--isolated", "--prompts", "1"),
    page!(
        "chromium, cpu: failing",
        Chromium,
        "cpu",
        "failing",
        "--only",
        "in a worker,in a page",
        "--every",
        "60",
        "--seed",
        "7"
    ),
    page!("firefox, webgl: conformance", Firefox, "webgl", "conformance", "--every", "23"),
    page!("firefox, webgl: gab", Firefox, "webgl", "generate", "--prompts", "2"),
    page!(
        "firefox, webgl: checks",
        Firefox,
        "webgl",
        "checks",
        "--only",
        "generation,lost while generating,worker that ends,policy"
    ),
    page!("firefox, webgpu: gab", Firefox, "webgpu", "generate", "--prompts", "1", "--tokens", "24"),
    Run {
        title: "a text that moves",
        needs: Need::Browsers(&[Kind::Firefox, Kind::Chromium]),
        program: Program::Task,
        args: &["travel"],
    },
    page!("webkit, webgl: conformance", Webkit, "webgl", "conformance", "--every", "23"),
    page!("webkit, webgl: gab", Webkit, "webgl", "generate", "--prompts", "2"),
    page!(
        "webkit, webgl: checks",
        Webkit,
        "webgl",
        "checks",
        "--only",
        "generation,cache,lost while generating,policy"
    ),
    // The oldest Chromium, with the build for older browsers, and one with that for today. A part of each run: they are to
    // take no more than a few minutes together.
    old!("80", "webgl", "generate", "--prompts", "1", "--tokens", "24"),
    old!("80", "cpu", "generate", "--prompts", "1", "--tokens", "24"),
    old!("80", "webgl", "checks", "--only", "build,files"),
    Run { title: "what the release says of itself", needs: Need::Node, program: Program::Task, args: &["verify"] },
];

/// Runs that take too long for each change: the whole suite wherever above only a part of it is run in a browser,
/// real models in more browsers, texts that fill the context, more hostile files, and the long cases of llama.cpp's
/// list.
pub const NIGHTLY: &[Run] = &[
    Run {
        title: "pool: ten minutes of failures, 1 of 10 needed",
        needs: Need::Nats,
        program: Program::Page,
        args: &["pool", "--churn", "1", "--seconds", "600"],
    },
    Run {
        title: "pool: ten minutes of failures, 5 of 10 needed",
        needs: Need::Nats,
        program: Program::Page,
        args: &["pool", "--churn", "5", "--seconds", "600"],
    },
    Run {
        title: "pool: chains beside one worker",
        needs: Need::Nats,
        program: Program::Page,
        args: &["pool", "--chains"],
    },
    Run {
        title: "JavaScript package in Next.js",
        needs: Need::Node,
        program: Program::Node,
        args: &["js/test/run.js", "next"],
    },
    Run {
        title: "pages and workers as one chain",
        needs: Need::Node,
        program: Program::Node,
        args: &["js/test/run.js", "mixed"],
    },
    Run {
        title: "types: windows",
        needs: Need::System(System::Windows),
        program: Program::Task,
        args: &["types", "windows"],
    },
    Run {
        title: "types: macos",
        needs: Need::System(System::Macos),
        program: Program::Task,
        args: &["types", "macos"],
    },
    // Its window takes as long to compile as a third of all else.
    Run {
        title: "viewer",
        needs: Need::Nothing,
        program: Program::Cargo,
        args: &["test", "--release", "--package", "anygpu-viewer", "--", "--show-output"],
    },
    Run { title: "CPU kernels on NEON, emulated", needs: Need::Arm, program: Program::Task, args: &["arm"] },
    Run {
        title: "all models on GPUs",
        needs: Need::Nothing,
        program: Program::Cargo,
        args: on_gpus!(
            all,
            "test",
            "--release",
            "--workspace",
            "--exclude",
            "anygpu-viewer",
            "--test",
            "models",
            "--",
            "--show-output"
        ),
    },
    Run {
        title: "tests that take minutes",
        needs: Need::Driver("webgl"),
        program: Program::Cargo,
        args: &["test", "--release", "--workspace", "--exclude", "anygpu-viewer", "--", "--ignored", "--show-output"],
    },
    Run {
        title: "hostile files, cpu",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["fuzz", "--through", "cpu", "--count", "5000", "--seconds", "1500"],
    },
    Run {
        title: "hostile files, webgpu",
        needs: Need::Driver("webgpu"),
        program: Program::Task,
        args: &["fuzz", "--through", "webgpu", "--count", "300", "--seconds", "1500"],
    },
    Run {
        title: "hostile files, webgl",
        needs: Need::Driver("webgl"),
        program: Program::Task,
        args: &["fuzz", "--through", "webgl", "--count", "300", "--seconds", "1500"],
    },
    Run {
        title: "dependencies: advisories",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["supply", "--advisories"],
    },
    Run { title: "wasm modules, built twice", needs: Need::Nothing, program: Program::Task, args: &["reproduce"] },
    suite!(
        "whole conformance: webgpu",
        Need::Driver("webgpu"),
        "--backend",
        "webgpu-core",
        "--backend",
        "webgpu-split",
        "--backend",
        "webgpu-int8"
    ),
    suite!(
        "whole conformance: webgl, packed",
        Need::Driver("webgl"),
        "--backend",
        "webgl-fold",
        "--backend",
        "webgl-split"
    ),
    suite!(
        "whole conformance: webgl, others",
        Need::Driver("webgl"),
        "--backend",
        "webgl-r32f",
        "--backend",
        "webgl-bits"
    ),
    suite!("llama.cpp's small cases: webgpu", Need::Driver("webgpu"), "--peer", "small", "--backend", "webgpu"),
    suite!("llama.cpp's small cases: webgl", Need::Driver("webgl"), "--peer", "small", "--backend", "webgl"),
    suite!("llama.cpp's large cases", Need::Nothing, "--peer", "large", "--backend", "cpu"),
    page!(
        "chromium, webgpu in bytes: conformance",
        Chromium,
        "webgpu-int8",
        "conformance",
        "--op",
        "linear",
        "--every",
        "17"
    ),
    page!("chromium, webgl bits: gab", Chromium, "webgl-bits", "generate", "--prompts", "1"),
    page!(
        "chromium, webgl: gemma3",
        Chromium,
        "webgl",
        "generate",
        "--model",
        "gemma3",
        "--prompts",
        "1",
        "--tokens",
        "4"
    ),
    page!("chromium, cpu: gemma3", Chromium, "cpu", "generate", "--model", "gemma3"),
    page!("firefox, webgl bits: conformance", Firefox, "webgl-bits", "conformance", "--every", "23"),
    page!("firefox, webgl bits: gab", Firefox, "webgl-bits", "generate", "--prompts", "1"),
    page!("firefox, webgpu: smollm2", Firefox, "webgpu", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("webkit, webgl bits: conformance", Webkit, "webgl-bits", "conformance", "--every", "16"),
    old!("80", "webgl", "conformance", "--every", "7"),
    old!("80", "webgl-bits", "conformance", "--every", "7"),
    old!("80", "cpu", "conformance", "--every", "7"),
    Run {
        title: "pool: all chains with seams of f16",
        needs: Need::Nats,
        program: Program::Page,
        args: &["pool", "--only", "f16"],
    },
    Run {
        title: "pool: ever more failures",
        needs: Need::Nats,
        program: Program::Page,
        args: &["pool", "--churn", "3", "--seconds", "60"],
    },
    page!(
        "chromium, webgpu: other checks",
        Chromium,
        "webgpu",
        "checks",
        "--only",
        "selection,next turn,embedding,chances"
    ),
    page!(
        "chromium, webgl: other checks",
        Chromium,
        "webgl",
        "checks",
        "--only",
        "formats,sessions,pace,page,embedding,chances,device"
    ),
    page!(
        "firefox, webgl: other checks",
        Firefox,
        "webgl",
        "checks",
        "--only",
        "selection,sessions,embedding,network,cache,files,device,pace"
    ),
    page!("firefox, webgpu: checks", Firefox, "webgpu", "checks", "--only", "selection,embedding,chances,device"),
    page!("webkit, webgl: other checks", Webkit, "webgl", "checks", "--only", "selection,turn,files,device"),
    page!("chromium, webgl: smollm2", Chromium, "webgl", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("firefox, webgl: smollm2", Firefox, "webgl", "generate", "--model", "smollm2", "--prompts", "1"),
    suite!("whole mutation check", Need::Nothing, "--mutate"),
    // The pages of this repository: what a person does there, in Chromium and Firefox.
    Run { title: "page: flows", needs: Need::Node, program: Program::Node, args: &["js/test/run.js", "site"] },
    Run {
        title: "JavaScript package with other bundlers",
        needs: Need::Node,
        program: Program::Node,
        args: &["js/test/run.js", "esbuild", "rollup"],
    },
    page!("chromium, webgpu: whole conformance", Chromium, "webgpu", "conformance"),
    page!("chromium, webgpu as on a GPU: whole conformance", Chromium, "webgpu-core", "conformance"),
    page!("chromium, webgpu in bytes: whole linear", Chromium, "webgpu-int8", "conformance", "--op", "linear"),
    page!("chromium, webgl: whole conformance", Chromium, "webgl", "conformance"),
    page!("chromium, webgl bits: whole conformance", Chromium, "webgl-bits", "conformance"),
    page!(
        "chromium, webgpu: gemma3",
        Chromium,
        "webgpu",
        "generate",
        "--model",
        "gemma3",
        "--prompts",
        "1",
        "--tokens",
        "2"
    ),
    page!("chromium, threads: gab", Chromium, "cpu", "generate", "--isolated", "--threads", "4"),
    page!(
        "chromium, threads: smollm2",
        Chromium,
        "cpu",
        "generate",
        "--isolated",
        "--threads",
        "2",
        "--model",
        "smollm2"
    ),
    page!("chromium, threads: conformance", Chromium, "cpu", "conformance", "--isolated", "--threads", "3"),
    page!("chromium, threads: cycles", Chromium, "cpu", "cycles", "--isolated", "--threads", "3", "--cycles", "48"),
    page!("firefox, threads: gab", Firefox, "cpu", "generate", "--isolated", "--threads", "3"),
    page!("chromium, auto, isolated: gab", Chromium, "auto", "generate", "--isolated", "--prompts", "1"),
    page!("firefox, webgl: whole conformance", Firefox, "webgl", "conformance"),
    page!("firefox, webgpu: whole conformance", Firefox, "webgpu", "conformance"),
    page!("firefox, webgl bits: whole conformance", Firefox, "webgl-bits", "conformance"),
    page!("webkit, webgl: whole conformance", Webkit, "webgl", "conformance"),
    page!("firefox, webgl: all of smollm2", Firefox, "webgl", "generate", "--model", "smollm2"),
    page!("webkit, webgl: all of smollm2", Webkit, "webgl", "generate", "--model", "smollm2"),
    page!("firefox, webgl: gemma3", Firefox, "webgl", "generate", "--model", "gemma3", "--prompts", "1"),
    page!("webkit, webgl: gemma3", Webkit, "webgl", "generate", "--model", "gemma3", "--prompts", "1"),
    page!("chromium, webgpu: smollm2", Chromium, "webgpu", "generate", "--model", "smollm2", "--prompts", "1"),
    old!("80", "webgl-bits", "generate", "--prompts", "1", "--tokens", "24"),
    old!("103", "webgl", "generate", "--prompts", "1", "--tokens", "24"),
    old!("103", "webgl", "checks", "--only", "workers,build,device,next turn"),
    old!("103", "cpu", "checks", "--only", "cache,abort"),
    page!("webkit, webgl bits: gab", Webkit, "webgl-bits", "generate", "--prompts", "1"),
    old!("103", "cpu", "conformance", "--every", "7"),
    old!("103", "webgl", "conformance", "--every", "7"),
    old!("103", "cpu", "generate", "--prompts", "1", "--tokens", "24"),
    page!("webkit, webgl bits: whole conformance", Webkit, "webgl-bits", "conformance"),
    page!("chromium, webgpu: formats", Chromium, "webgpu", "checks", "--only", "formats:"),
    page!("chromium, webgpu: sessions", Chromium, "webgpu", "checks", "--only", "sessions:"),
    page!("firefox, webgl: all of gab", Firefox, "webgl", "generate"),
    page!("chromium, webgpu: more of gab", Chromium, "webgpu", "generate", "--prompts", "1", "--tokens", "64"),
    page!("webkit, webgl: sessions", Webkit, "webgl", "checks", "--only", "sessions:"),
    old!("80", "cpu", "checks", "--only", "sessions:,cache,abort,policy,next turn"),
    old!("80", "webgl", "checks", "--only", "device"),
    old!("103", "cpu", "checks", "--only", "sessions:"),
    page!("chromium, cpu: 1000 cycles", Chromium, "cpu", "cycles", "--cycles", "1000", "--timeout", "5400"),
    page!("chromium, webgl: 1000 cycles", Chromium, "webgl", "cycles", "--cycles", "1000", "--timeout", "5400"),
    page!("chromium, webgpu: cycles", Chromium, "webgpu", "cycles", "--cycles", "48", "--timeout", "5400"),
    page!("firefox, webgl: cycles", Firefox, "webgl", "cycles", "--cycles", "48", "--timeout", "5400"),
    page!("chromium, cpu: all of failing", Chromium, "cpu", "failing", "--timeout", "7200"),
];

/// Builds the page with threads, for a night.
pub const PAGE_WITH_THREADS: Run = Run {
    title: "page with threads",
    needs: Need::Nothing,
    program: Program::Task,
    args: &["web", "--no-serve", "--threads"],
};

/// Builds the page.
pub const PAGE: Run = Run { title: "page", needs: Need::Nothing, program: Program::Task, args: &["web", "--no-serve"] };

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of no test would be left out, or left in, without a word.
    #[test]
    fn tests_of_models_that_are_named_exist() {
        let source = std::fs::read_to_string(crate::root().join("engine/tests/models.rs")).unwrap();
        let named = || RUNS.iter().chain(NIGHTLY).flat_map(|run| run.args).filter_map(|arg| arg.split_once("::"));
        for (layout, test) in named() {
            assert!(source.contains(&format!("\n    {layout} = ")), "no layout {layout}");
            assert!(test.is_empty() || source.contains(&format!("fn {test}() {{")), "no test {test}");
        }
        assert!(named().count() > 30, "only {} were found", named().count());
    }
}
