//! Tests of the interfaces that scripts rely on: arguments, JSON, exit codes, one-line errors.

#[path = "../../xtask/tasks/src/documented.rs"]
mod documented;
#[path = "../../model/tests/common/split.rs"]
mod split;

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

/// Runs the binary on the CPU, which every machine has.
fn anygpu(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(args).env("ANYGPU_BACKEND", "cpu").stdin(Stdio::null());
    command
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&text(args)).unwrap()
}

/// Runs a command that must succeed, and returns its output.
fn text(args: &[&str]) -> String {
    let output = anygpu(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn reference(prompt: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../../models/gab.reference.json")).unwrap();
    let cases = all["files"]["gab-q4_0.gguf"].as_array().unwrap();
    cases.iter().find(|case| case["prompt"] == prompt).unwrap().clone()
}

#[test]
fn generate_gives_the_reference_and_all_fields() {
    for prompt in ["Once upon a time", ""] {
        let case = reference(prompt);
        let found = json(&["generate", "--prompt", prompt, "--max-tokens", "64", "--greedy", "--ignore-eos", "--json"]);
        assert_eq!((&found["prompt_tokens"], &found["tokens"]), (&case["prompt_ids"], &case["greedy_ids"]));
        assert_eq!(found["text"], case["greedy_text"]);
        assert_eq!((&found["backend"], &found["model"]), (&"cpu".into(), &"gab".into()));
        for key in ["adapter", "finish"] {
            assert!(found[key].is_string(), "{key}");
        }
        for key in ["load_ms", "prefill_ms", "decode_ms_per_token"] {
            assert!(found[key].as_f64().is_some_and(|ms| ms > 0.0), "{key}");
        }
        let stats = &found["stats"];
        for key in ["dispatches", "submits", "gpu_objects", "heap_allocations", "upload_bytes", "readback_bytes"] {
            assert!(stats[format!("{key}_per_token")].is_number(), "{key}");
        }
        assert!(stats["device_memory_bytes"].is_u64());
    }
}

#[test]
fn answers_have_the_format_that_is_asked_for() {
    let path = std::env::temp_dir().join(format!("anygpu-schema-{}.json", std::process::id()));
    let schema = r#"{"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 3, "maxItems": 3}"#;
    std::fs::write(&path, schema).unwrap();
    let generate = |format: &[&str]| {
        let args = ["generate", "--prompt", "Once", "--temperature", "1", "--seed", "5", "--json"];
        let found = json(&[&args, format].concat());
        assert_eq!(found["finish"], "stop", "{found}");
        found["text"].as_str().unwrap().to_owned()
    };
    let text = generate(&["--json-schema", path.to_str().unwrap()]);
    assert_eq!(text, generate(&["--json-schema", schema]));
    let colours: Vec<String> = serde_json::from_str(&text).unwrap();
    assert!(colours.len() == 3 && colours.iter().all(|colour| ["red", "blue"].contains(&&**colour)), "{text}");
    let text = generate(&["--regex", "(Bob|Lily) is [0-9]{1,2}\\."]);
    assert!(text.starts_with("Bob is ") || text.starts_with("Lily is "), "{text}");
    std::fs::remove_file(&path).unwrap();
    for (format, why) in [
        (&["--json-schema", "{"] as &[&str], "the schema is not JSON"),
        (&["--json-schema", "/no/such.json"], "cannot read the schema"),
        (&["--json-schema", r#"{"uniqueItems": true}"#], "unsupported schema keyword \"uniqueItems\" at #;"),
        (&["--regex", "("], "cannot be held to this format"),
        (&["--regex", "a", "--json-object"], "cannot be used with"),
    ] {
        let output = anygpu(&[&["generate", "--prompt", "Once"], format].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{format:?}: {said}");
    }
}

#[test]
fn logits_give_the_reference_and_an_array_of_all_positions() {
    let case = reference("Once upon a time");
    let path = std::env::temp_dir().join(format!("anygpu-logits-{}.npy", std::process::id()));
    let found = json(&["logits", "--tokens", "956,1352,259,490", "--json", "--npy", path.to_str().unwrap()]);
    let text = json(&["logits", "--prompt", "Once upon a time", "--top", "10", "--json"]);
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found["prompt_tokens"], case["prompt_ids"]);
    assert_eq!(text["prompt_tokens"], case["prompt_ids"]);
    let (top, expected) = (found["top"].as_array().unwrap(), case["top10"].as_array().unwrap());
    assert_eq!(top.len(), 10);
    let (mut error, mut energy) = (0.0, 0.0);
    for (found, expected) in top.iter().zip(expected) {
        assert_eq!(found[0], expected[0]);
        let (found, expected) = (found[1].as_f64().unwrap(), expected[1].as_f64().unwrap());
        error += (found - expected).powi(2);
        energy += expected.powi(2);
    }
    assert!(error <= 1e-7 * energy, "NMSE {:e}", error / energy);
    let header = String::from_utf8_lossy(&file[10..128]);
    assert!(header.contains("'shape': (4, 5256)"), "{header}");
    assert_eq!(file.len() % 64, (4 * 5256 * 4) % 64);
}

/// Returns the path of a file in `models/fixtures`.
fn fixture(name: &str) -> String {
    format!("{}/../models/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn embed_gives_a_vector_or_several() {
    let file = fixture("bert-mean.gguf");
    let embed = |more: &[&str]| json(&[&["embed", "--model", &file, "--json"], more].concat());
    let vector =
        |value: &Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect() };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let one = embed(&["--tokens", "2,73,74,75,3"]);
    assert_eq!(one["pooling"], "mean");
    let one = vector(&one["embedding"]);
    assert_eq!(one.len(), 24);
    approx::assert_abs_diff_eq!(dot(&one, &one), 1.0, epsilon = 1e-6);
    let raw = vector(&embed(&["--tokens", "2,73,74,75,3", "--raw"])["embedding"]);
    let length = dot(&raw, &raw).sqrt();
    approx::assert_abs_diff_eq!(dot(&raw, &one), length, epsilon = 1e-5);
    assert!((length - 1.0).abs() > 1e-3, "{length}");
    let texts = embed(&["--text", "the cat sat", "--text", "", "--dimensions", "5"]);
    let texts = texts["embeddings"].as_array().unwrap();
    assert_eq!([texts.len(), vector(&texts[0]).len(), vector(&texts[1]).len()], [2, 5, 5]);
    let rows = embed(&["--tokens", "2,73,3", "--pooling", "none"]);
    assert_eq!((&rows["pooling"], rows["embedding"].as_array().unwrap().len()), (&"none".into(), 3));
    let chat = json(&["embed", "--text", "Once", "--pooling", "last", "--json"]);
    assert_eq!(vector(&chat["embedding"]).len(), 512);
    let plain = anygpu(&["embed", "--model", &file, "--text", "the cat"]);
    assert_eq!(String::from_utf8(plain.stdout).unwrap().split_whitespace().count(), 24);
}

#[test]
fn rerank_puts_the_best_document_first() {
    let file = fixture("encoders/rank-wpm-new.gguf");
    let scores = json(&["embed", "--model", &file, "--tokens", "2,7,3", "--json"]);
    assert_eq!((&scores["pooling"], scores["scores"].as_array().unwrap().len()), (&"rank".into(), 1));
    let rank = |more: &[&str]| {
        let ranked = json(&[&["rerank", "--model", &file, "--query", "the cat", "--json"], more].concat());
        let result = |result: &Value| (result["index"].as_u64().unwrap(), result["relevance_score"].as_f64().unwrap());
        ranked["results"].as_array().unwrap().iter().map(result).collect::<Vec<_>>()
    };
    let ranked = rank(&["--document", "mat", "--document", "the cat sat on the mat", "--document", "a lower mat"]);
    assert!(ranked.is_sorted_by(|a, b| a.1 >= b.1) && ranked.len() == 3, "{ranked:?}");
    let (_, known) = ranked.iter().find(|(index, _)| *index == 1).unwrap();
    approx::assert_abs_diff_eq!(*known, -1.0560, epsilon = 1e-4);
    assert_eq!(rank(&["--document", "mat", "--document", "the cat sat on the mat", "--top-n", "1"]).len(), 1);
    let mut child = command(&["rerank", "--model", &file, "--query", "the cat", "--documents", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"mat\nthe cat sat on the mat\na lower mat\n").unwrap();
    let piped: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(
        (piped["results"][0]["index"].as_u64(), piped["results"].as_array().unwrap().len()),
        (Some(ranked[0].0), 3)
    );
    let refused = anygpu(&["rerank", "--model", &file, "--query", "-", "--documents", "-"]);
    assert!(!refused.status.success() && String::from_utf8(refused.stderr).unwrap().contains("cannot both be read"));
    let refused = anygpu(&["rerank", "--query", "a", "--document", "b"]);
    assert!(!refused.status.success() && String::from_utf8(refused.stderr).unwrap().contains("no classifier"));
    let refused = anygpu(&["rerank", "--model", &fixture("bert-mean.gguf"), "--query", "a", "--document", "b"]);
    assert!(!refused.status.success() && String::from_utf8(refused.stderr).unwrap().contains("no classifier"));
}

#[test]
fn tokenize_and_detokenize_are_inverse() {
    let tokens = json(&["tokenize", "--text", "Once upon a time", "--json"]);
    assert_eq!(tokens["tokens"], reference("Once upon a time")["prompt_ids"]);
    let text = json(&["detokenize", "--tokens", "956,1352,259,490", "--json"]);
    assert_eq!(text["text"], "Once upon a time");
}

#[test]
fn without_a_command_there_is_a_report_and_a_whole_story() {
    let output = anygpu(&[]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("* cpu")), "{text}");
    assert!(text.contains("\n\nOnce upon a time, there was"), "{text}");
    assert!(text.trim_end().ends_with(['.', '!', '?', '"']), "{text}");
}

#[test]
fn drivers_are_silent_unless_asked_for() {
    for args in [["probe"].as_slice(), &[]] {
        let mut command = command(args);
        let output = command.env("ANYGPU_BACKEND", "auto").env_remove("XDG_RUNTIME_DIR").output().unwrap();
        let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{errors}");
        assert!(text.lines().any(|line| line.starts_with("* ")), "{text}");
        // After the story come these lines of the program.
        let is_ours = |line: &str| line.starts_with("gab on ") || line.starts_with("the context holds ");
        let lines: Vec<&str> = errors.lines().filter(|line| !line.is_empty() && !is_ours(line)).collect();
        assert!(lines.is_empty(), "{args:?}: {errors}");
    }
}

#[test]
fn probe_bench_and_trace_answer_in_json() {
    let probe = json(&["probe", "--json"]);
    assert_eq!(probe["chosen"], "cpu");
    assert!(probe["rungs"].as_array().is_some_and(|rungs| rungs.len() >= 3));
    let bench = json(&["bench", "--prefill", "8", "--decode", "4", "--repeat", "2", "--json"]);
    assert_eq!(bench["prefill_ms"]["n"], 2);
    assert!(bench["decode_ms_per_token"]["median"].as_f64().is_some_and(|ms| ms > 0.0));
    let first = &bench["first_token"];
    let parts = ["open_ms", "load_ms", "compile_ms", "prefill_ms"].map(|part| first[part].as_f64().unwrap());
    approx::assert_abs_diff_eq!(parts.iter().sum::<f64>(), first["total_ms"].as_f64().unwrap(), epsilon = 1e-6);
    let without_tokenizer = json(&["trace", "--json", "--model", &fixture("llama-q8_0.gguf")]);
    let trace = json(&["trace", "--json"]);
    for trace in [&without_tokenizer, &trace] {
        assert!(trace["kernels"].as_array().is_some_and(|kernels| !kernels.is_empty()));
    }
    let count = |name: &str| {
        trace["roles"].as_array().unwrap().iter().find(|role| role["role"] == name).unwrap()["kernels"].as_u64()
    };
    // Each of the 6 blocks has one attention kernel. Normalized rows go through matmuls.
    assert_eq!((count("attention"), count("sampling")), (Some(6), Some(1)));
    // Keys and values of 512 tokens, for which a text has room at first, and the token ids of the whole context.
    assert_eq!(trace["memory"]["states"], (512 * 6 * 2 * 512 + 2048) * 4);
    let buffers = |class: &str| trace["buffers"].as_array().unwrap().iter().find(|of| of["class"] == class).unwrap();
    assert_eq!((&buffers("states")["count"], &buffers("states")["bytes"]), (&13.into(), &trace["memory"]["states"]));
    assert_eq!(buffers("weights")["bytes"], trace["memory"]["weights"]);
    assert!(buffers("slots")["count"].as_u64() >= Some(3));
}

#[test]
fn traces_and_measurements_begin_at_any_depth() {
    let bytes = |trace: &Value, role: &str| -> u64 {
        let roles = trace["roles"].as_array().unwrap();
        roles.iter().find(|of| of["role"] == role).map_or(0, |of| of["bytes"].as_u64().unwrap())
    };
    let [near, far] = ["10", "110"].map(|depth| json(&["trace", "--depth", depth, "--json"]));
    // Each token has keys and values of 512 floats in 6 blocks.
    assert_eq!((&near["depth"], &far["depth"]), (&10.into(), &110.into()));
    assert_eq!((&near["phase"], &near["rows"]), (&"decode".into(), &1.into()));
    assert_eq!(bytes(&far, "attention") - bytes(&near, "attention"), 100 * 6 * 2 * 512 * 4);
    for role in ["matmul", "cache", "sampling"] {
        assert_eq!(bytes(&far, role), bytes(&near, role), "{role}");
    }
    let prompt = json(&["trace", "--prefill", "40", "--depth", "100", "--json"]);
    assert_eq!((&prompt["phase"], &prompt["depth"], &prompt["rows"]), (&"prefill".into(), &100.into(), &40.into()));
    let attention = prompt["roles"].as_array().unwrap().iter().find(|of| of["role"] == "attention").unwrap();
    // Of two steps the first gives no token, so that its last block attends to nothing.
    assert_eq!(attention["kernels"], 6 + 5);
    assert!(prompt["step_ms"].as_f64() > Some(0.0));

    let counts = ["--prefill", "8", "--decode", "4", "--repeat", "1", "--json"];
    let bench = json(&[&["bench", "--depth", "20"], &counts[..]].concat());
    assert_eq!((&bench["depth"], &bench["prefill_tokens"]), (&20.into(), &8.into()));
    // Decoding has 30 tokens before it in its middle.
    assert_eq!(bench["decode_floor"]["cache_bytes"], 6 * 2 * 512 * 4 * 30);
    let refused = anygpu(&[&["bench", "--depth", "4000"], &counts[..]].concat());
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("2048") && error.contains("4013"), "{error}");
    for asked in [["--depth", "18446744073709551615"], ["--depth", "127"], ["--prefill", "128"]] {
        let refused = anygpu(&[&["trace", "--n-ctx", "128"], &asked[..]].concat());
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && error.contains("the context of 128"), "{asked:?}: {error}");
    }
}

#[test]
fn inspect_says_what_a_file_is_and_what_would_run_it() {
    let found = json(&["inspect", "gab", "--n-ctx", "256", "--json"]);
    assert_eq!(
        (&found["architecture"], &found["n_ctx_train"], &found["n_ctx"]),
        (&"gpt2".into(), &2048.into(), &256.into())
    );
    assert_eq!(found["parameters"], 22_654_976);
    assert!(found["name"].is_string() && found["tokenizer"].is_string());
    let bytes: u64 = found["tensors"].as_array().unwrap().iter().map(|tensor| tensor["bytes"].as_u64().unwrap()).sum();
    let file = include_bytes!("../../models/gab-q4_0.gguf").len() as u64;
    assert!(bytes < file && bytes > file - (1 << 20), "{bytes} of {file}");
    let rungs = found["rungs"].as_array().unwrap();
    let cpu = rungs.iter().find(|rung| rung["name"] == "cpu").unwrap();
    // Keys and values of 512 floats in 6 blocks, and the token ids.
    assert_eq!((&cpu["runs"], &cpu["state_bytes"]), (&true.into(), &(256 * (6 * 2 * 512 + 1) * 4).into()));
    assert!(cpu["device_bytes"].as_u64().unwrap() > bytes);
    // The other backends were not requested.
    assert!(rungs.iter().filter(|rung| rung["runs"] == false).all(|rung| rung["reasons"][0].is_string()));
    let shown = anygpu(&["inspect", "gab"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("22.7 million"));
}

#[test]
fn bench_counts_what_a_token_costs_and_has_floors() {
    let bench = json(&["bench", "--prefill", "8", "--decode", "4", "--repeat", "1", "--json"]);
    let trace = json(&["trace", "--json"]);
    let kernels = trace["kernels"].as_array().unwrap().len() as f64;
    let stats = &bench["stats"];
    assert_eq!(stats["dispatches_per_token"], kernels);
    assert_eq!((&stats["gpu_objects_per_token"], &stats["submits_per_token"]), (&0.0.into(), &1.0.into()));
    // The read of the token before the steady ones counts as well.
    assert!(stats["readback_bytes_per_token"].as_f64().is_some_and(|bytes| (4.0..=8.0).contains(&bytes)));
    // A token reads the whole file except its header, the table of positions and the vectors.
    let floor = &bench["decode_floor"];
    let file = include_bytes!("../../models/gab-q4_0.gguf").len() as u64;
    let weights = floor["weight_bytes"].as_u64().unwrap();
    assert!(weights > file / 2 && weights < file, "{weights}");
    // Keys and values of 512 floats in 6 blocks, at the tenth position.
    assert_eq!(floor["cache_bytes"], 6 * 2 * 512 * 4 * 10);
    for (value, least) in [(&floor["fraction"], 0.0), (&bench["floors"]["read_gb_per_s"], 0.0)] {
        assert!(value.as_f64().is_some_and(|value| value > least), "{bench}");
    }
    let phases = ["encode_ms", "queue_ms", "fetch_ms", "utilisation"].map(|phase| bench[phase].as_f64().unwrap());
    // The CPU computes in the call, which is no encoding.
    assert!(phases[0] == 0.0 && phases[1] > 0.0 && phases[3] > 0.0 && phases[3] <= 1.0, "{phases:?}");
    let roles = |phase: &str| bench["roles"][phase].as_array().unwrap();
    let of = |phase: &str, role: &str| roles(phase).iter().find(|of| of["role"] == role).unwrap()["kernels"].clone();
    assert_eq!((of("prefill", "attention"), of("decode", "attention")), (6.into(), 6.into()));
    assert!(roles("decode").iter().all(|of| of["ms"].is_null() && of["percent"].is_null()));
    assert!(bench["profile"].is_null() && trace["kernels_ms"].is_null() && trace["kernels"][0]["ms"].is_null());
    assert!(bench["floors"]["dispatch_us"].is_number() && bench["floors"]["readback_ms"]["n"].is_u64());
}

#[test]
fn bench_times_operators_and_switches_decisions_off() {
    let ops = json(&["bench", "--ops", "--queued", "2", "--json"]);
    let names: Vec<_> = ops["ops"].as_array().unwrap().iter().map(|op| op["op"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 12, "{names:?}");
    assert_eq!((&ops["queued"], &ops["backend"]), (&2.into(), &"cpu".into()));
    assert!(ops["ops"].as_array().unwrap().iter().all(|op| op["ms"]["n"].as_u64() >= Some(3)));

    let ablated = json(&["bench", "--ablate", "--prefill", "4", "--decode", "4", "--repeat", "1", "--json"]);
    let rows = ablated["ablate"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["without"] == name).unwrap();
    let dispatches = |name: &str| row(name)["dispatches_per_token"].as_f64().unwrap();
    assert_eq!(rows[0]["without"], "nothing");
    assert_eq!((&rows[0]["decode_ratio"], &rows[0]["prefill_ratio"]), (&1.0.into(), &1.0.into()));
    // A fused operator does the work of several.
    assert!(dispatches("fused linear") > dispatches("nothing"));
    assert!(dispatches("fusion") > dispatches("fused linear"));
    let submits = |kernels: u64| {
        let name = format!("one submit (a submit after {kernels} kernels)");
        (row(&name)["submits_per_token"].as_f64(), Some((dispatches(&name) / kernels as f64).ceil()))
    };
    for (submits, parts) in [submits(1), submits(8)] {
        assert_eq!(submits, parts);
    }
    let made = |name: &str| row(name)["gpu_objects_per_token"].as_f64().unwrap();
    assert_eq!(made("nothing"), 0.0);
    assert!(made("reuse (buffers and bindings made for each step)") >= 1.0);
    // Weights in another format take other bytes, but the same number of kernels.
    assert_eq!(dispatches("planes (weights in 16-bit floats instead)"), dispatches("nothing"));
}

/// Returns a copy of a file with NaN in a vector of floats.
fn with_nan(file: &[u8], tensor: &str) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let gguf = anygpu::Gguf::from_bytes(file).unwrap();
    let offset = gguf.tensors.iter().find(|t| &*t.name == tensor).unwrap().offset as usize;
    bytes[offset..offset + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes
}

#[test]
fn errors_are_one_line_with_the_right_exit_code() {
    let folder = std::env::temp_dir().join(format!("anygpu-bad-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let gab = include_bytes!("../../models/gab-q4_0.gguf");
    let file = |name: &str, bytes: &[u8]| -> String {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().into()
    };
    let mut huge = gab[..1000].to_vec();
    huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let (empty, text) = (file("empty.gguf", b""), file("text.gguf", b"not a model"));
    let (cut, half) = (file("cut.gguf", &gab[..100_000]), file("half.gguf", &gab[..gab.len() / 2]));
    let huge = file("huge.gguf", &huge);
    let nan = file("nan.gguf", &with_nan(gab, "blk.1.attn_norm.weight"));
    let absent = folder.join("absent.gguf").to_str().unwrap().to_owned();
    let long = "word ".repeat(3000);
    let (bert, ids) = (fixture("bert-mean.gguf"), vec!["5"; 33].join(","));
    let cases: &[(i32, &[&str])] = &[
        (1, &["embed", "--text", "a"]),
        (1, &["embed", "--model", &bert, "--n-ctx", "32", "--tokens", &ids]),
        (1, &["embed", "--model", &bert, "--tokens", "96"]),
        (1, &["embed", "--model", &bert, "--text", "a", "--dimensions", "25"]),
        (2, &["embed", "--model", &bert, "--text", "a", "--pooling", "max"]),
        (1, &["generate", "--model", &bert]),
        (1, &["logits", "--model", &bert, "--tokens", "1"]),
        (1, &["generate", "--model", &absent]),
        (1, &["generate", "--model", folder.to_str().unwrap()]),
        (1, &["generate", "--model", &empty]),
        (1, &["generate", "--model", &text]),
        (1, &["generate", "--model", &cut]),
        (1, &["generate", "--model", &half]),
        (1, &["tokenize", "--text", "a", "--model", &huge]),
        (1, &["generate", "--model", &nan, "--json"]),
        (1, &["logits", "--model", &nan, "--tokens", "1,2"]),
        (1, &["generate", "--prompt", &long]),
        (1, &["generate", "--n-ctx", "0"]),
        (1, &["generate", "--temperature", "-1"]),
        (1, &["generate", "--top-k", "1000"]),
        (1, &["generate", "--fetch-interval", "0"]),
        (1, &["logits", "--tokens", "999999"]),
        (1, &["detokenize", "--tokens", "999999"]),
        (2, &["generate", "--backend", "abacus"]),
        (2, &["generate", "--threads", "0"]),
    ];
    for (code, args) in cases {
        let output = anygpu(args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {message}");
        assert!(message.starts_with("error: ") && message.trim_end().lines().count() == 1, "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let is_nan = args.contains(&nan.as_str());
        assert_eq!(message.contains("NaN or infinite at node"), is_nan, "{args:?}: {message}");
        assert_eq!(message.contains("norm with blk.1.attn_norm.weight"), is_nan, "{args:?}: {message}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(anygpu(&["generate", "--no-such-flag"]).status.code(), Some(2));
}

#[test]
fn threads_are_as_many_as_asked_for_and_change_no_text() {
    let args = ["generate", "--prompt", "The little dragon", "--max-tokens", "12", "--json"];
    let found = |given: &[&str]| json(&[&args, given].concat());
    let alone = found(&["--threads", "1"]);
    assert_eq!(alone["adapter"], "CPU, SIMD kernels, 1 thread");
    let three = found(&["--threads", "3"]);
    assert_eq!((&three["adapter"], &three["text"]), (&"CPU, SIMD kernels, 3 threads".into(), &alone["text"]));
    let output = command(&args).env("ANYGPU_THREADS", "2").output().unwrap();
    let two: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&two["adapter"], &two["text"]), (&"CPU, SIMD kernels, 2 threads".into(), &alone["text"]));
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let mut child = command(&["generate", "--max-tokens", "500", "--ignore-eos"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = Vec::new();
    let mut pipe = BufReader::with_capacity(1, child.stdout.take().unwrap());
    pipe.read_until(b' ', &mut first).unwrap();
    assert!(!first.is_empty());
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_is_in_groups_and_shells_and_man_are_told_the_same() {
    let help = text(&["generate", "--help"]);
    let at = |group: &str| help.find(&format!("\n{group}:\n")).unwrap_or_else(|| panic!("{group} in {help}"));
    for (group, option) in [
        ("Model", "--n-ctx"),
        ("Text", "--prompt"),
        ("Sampling", "--top-k"),
        ("Sessions", "--load-session"),
        ("Output", "--json"),
    ] {
        let lines = &help[at(group) + 1..];
        let end = lines.find("\n\n").filter(|_| group != "Output").map_or(lines.len(), |_| {
            let next = ["Model", "Text", "Sampling", "Sessions", "Backend", "Output"];
            next.iter().filter_map(|next| lines.find(&format!("\n{next}:\n"))).min().unwrap_or(lines.len())
        });
        assert!(lines[..end].contains(option), "{group} lacks {option}: {help}");
    }
    assert!(!help.contains('\u{1b}'), "colours in a pipe");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(text(&["completions", shell]).contains("load-session"), "{shell}");
    }
    let page = text(&["man"]);
    assert!(
        page.contains(".TH anygpu") && page.contains(".SH \"GENERATE\"") && page.contains("load\\-session"),
        "{page}"
    );
    let page = text(&["man", "generate"]);
    assert!(
        page.contains(".TH anygpu-generate") && !page.contains("rerank") && page.contains("max\\-tokens"),
        "{page}"
    );
    assert!(text(&["man", "pool", "serve"]).contains(".TH anygpu-pool-serve"));
    let refused = anygpu(&["man", "pool", "swim"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && error.contains("no command \"pool swim\""), "{error}");
    assert_eq!(text(&["list", "--help"]), text(&["ls", "--help"]));
}

/// Options come after the command that they belong to.
#[test]
fn options_of_devices_are_those_of_commands_that_run_on_one() {
    for name in ["tokenize", "detokenize", "pull", "ls", "rm", "completions", "man"] {
        let help = text(&[name, "--help"]);
        assert!(!help.contains("--threads"), "{name}: {help}");
    }
    for name in ["probe", "generate", "chat", "run", "serve", "logits", "embed", "inspect", "bench", "trace", "tune"] {
        assert!(text(&[name, "--help"]).contains("--threads"), "{name}");
    }
    let before = anygpu(&["--threads", "1", "ls"]);
    let error = String::from_utf8(before.stderr).unwrap();
    assert!(before.status.code() == Some(2) && error.contains("'ls' cannot be used with '--threads"), "{error}");
}

/// Returns the commands in the documents.
fn named() -> Vec<documented::Documented> {
    let mut named = documented::commands(&["cargo run --release --", "anygpu"]);
    named.extend(documented::commands(&["cargo run --release"]).into_iter().filter(|command| command.args.is_empty()));
    named
}

/// Commands are only parsed, because `--help` follows them.
#[test]
fn every_command_that_the_documents_name_can_be_parsed() {
    let named = named();
    assert!(named.len() > 10, "only {} were found", named.len());
    let help = |args: &[&str]| anygpu(&[args, &["--help"]].concat());
    for command in named {
        let args: Vec<&str> = command.args.iter().map(String::as_str).collect();
        let output = help(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        // The documents have a list of commands beside this one.
        if args == ["--help"] {
            for listed in command.about.split(", ") {
                assert!(help(&[listed]).status.success(), "{command}: there is no command {listed}");
            }
        }
    }
    assert_eq!(help(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(help(&["generate", "--no-such-flag"]).status.code(), Some(2));
    assert_eq!(help(&["generate", "--backend", "abacus"]).status.code(), Some(2));
}

/// Commands that run until they are stopped. Other tests run these.
const ENDLESS: [&str; 3] = ["serve", "pool serve", "pool work"];

/// Makes a command faster: on the CPU, with fewer tokens, runs and workers, and with a file instead of a model on a
/// hub.
fn shortened(args: &[String]) -> Vec<String> {
    let mut short: Vec<String> = Vec::new();
    for arg in args {
        let arg = match (short.last().map(String::as_str), arg.as_str()) {
            (Some("--backend"), _) => "cpu",
            (Some("--max-tokens"), _) => "8",
            (Some("--workers"), more) if more.len() > 3 => "100",
            (Some("--model"), hub) if hub.starts_with("hf:") => "FILE.gguf",
            (Some("--documents"), _) => "FILE.txt",
            (_, arg) => arg,
        };
        short.push(arg.into());
    }
    let usual: &[(&str, &str)] = match args.first().map_or("", String::as_str) {
        "generate" => &[("--max-tokens", "8")],
        "bench" | "tune" => &[("--prefill", "8"), ("--decode", "4"), ("--repeat", "1")],
        _ => &[],
    };
    for (name, value) in usual {
        if !args.iter().any(|arg| arg == name) {
            short.extend([*name, *value].map(String::from));
        }
    }
    short
}

/// Runs the commands in a folder with the files that the documents mention.
#[test]
fn every_command_that_the_documents_name_runs() {
    let folder = std::env::temp_dir().join(format!("anygpu-documents-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let gab = include_bytes!("../../models/gab-q4_0.gguf");
    write("FILE", gab);
    write("FILE.txt", b"the cat sat on the mat\nmat\n");
    write("FILE.json", br#"{"type": "array", "items": {"enum": ["red"]}, "maxItems": 1}"#);
    for (at, part) in split::split(gab, &[0, 10, 20, 30]).iter().enumerate() {
        write(&format!("m-{:05}-of-00005.gguf", at + 1), part);
    }
    let mut ran = 0;
    for command in named().iter().filter(|command| !command.is_part) {
        let begins = |name: &&str| command.args.join(" ").starts_with(name);
        if ENDLESS.iter().any(begins) {
            continue;
        }
        let model = fixture(match command.args.first().map_or("", String::as_str) {
            "embed" => "bert-mean.gguf",
            "rerank" => "encoders/rank-wpm-new.gguf",
            _ => "by-heart.gguf",
        });
        std::fs::copy(model, folder.join("FILE.gguf")).unwrap();
        let args = shortened(&command.args);
        let mut run = self::command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let output = run.current_dir(&folder).env("XDG_CACHE_HOME", &folder).output().unwrap();
        assert!(output.status.success(), "{command} as {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty() || args[0] == "chat", "{command} says nothing");
        ran += 1;
    }
    assert!(ran > 20, "only {ran} were run");
    std::fs::remove_dir_all(&folder).unwrap();
}
