//! Tests of saved and loaded sessions.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn anygpu(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(args).env("ANYGPU_BACKEND", "cpu").stdin(Stdio::null()).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = anygpu(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A file that exists during one test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("anygpu-{}-{name}.session", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_text_goes_on_where_it_was_saved() {
    let file = File::new("text");
    let sampled = ["--temperature", "1", "--seed", "7", "--ignore-eos", "--json"];
    let run = |args: &[&str]| json(&[&["generate"], args].concat());
    let whole = run(&[&["--prompt", "One day", "--max-tokens", "24"], &sampled[..]].concat());
    let begin = ["--prompt", "One day", "--max-tokens", "10", "--save-session", file.path()];
    let begin = run(&[&begin[..], &sampled].concat());
    // The sampling options are saved as well.
    let end = run(&["--load-session", file.path(), "--max-tokens", "14", "--ignore-eos", "--json"]);
    let tokens = |report: &Value| report["tokens"].as_array().unwrap().clone();
    assert_eq!([tokens(&begin), tokens(&end)].concat(), tokens(&whole));
    assert_eq!(end["prompt_tokens"].as_array().unwrap().len(), begin["prompt_tokens"].as_array().unwrap().len() + 10);
    // Saved to the same file, after another prompt.
    run(&[
        "--load-session",
        file.path(),
        "--max-tokens",
        "14",
        "--ignore-eos",
        "--json",
        "--save-session",
        file.path(),
    ]);
    let more = run(&["--load-session", file.path(), "--prompt", " Then", "--max-tokens", "1", "--json"]);
    assert!(more["prompt_tokens"].as_array().unwrap().len() > tokens(&whole).len());
}

#[test]
fn logits_go_on_as_well() {
    let file = File::new("logits");
    let whole = json(&["logits", "--tokens", "956,1352,259,490", "--json"]);
    json(&["logits", "--tokens", "956,1352", "--save-session", file.path(), "--json"]);
    let rest = json(&["logits", "--load-session", file.path(), "--tokens", "259,490", "--json"]);
    assert_eq!(rest["prompt_tokens"], whole["prompt_tokens"]);
    let ids = |report: &Value| report["top"].as_array().unwrap().iter().map(|pair| pair[0].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&rest), ids(&whole));
}

#[test]
fn what_is_no_session_of_this_model_is_refused_in_one_line() {
    let file = File::new("refused");
    json(&["logits", "--tokens", "956,1352", "--kv-cache", "f16", "--save-session", file.path(), "--json"]);
    let path = format!("{}/../models/fixtures/llama-gqa-tied.gguf", env!("CARGO_MANIFEST_DIR"));
    let saved = std::fs::read(&file.0).unwrap();
    let refused = |args: &[&str], what: &str| {
        let output = anygpu(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.lines().count() == 1 && error.contains(what), "{error}");
    };
    let load = ["logits", "--tokens", "1", "--load-session", file.path()];
    // Without --kv-cache, the saved type is used.
    json(&[&load[..], &["--json"]].concat());
    refused(&[&load[..], &["--kv-cache", "q8_0"]].concat(), "load the model with that KV cache");
    refused(&[&load[..], &["--kv-cache", "f32"]].concat(), "load the model with that KV cache");
    refused(&[&load[..], &["--model", &path, "--kv-cache", "f32"]].concat(), "load it with the model file");
    std::fs::write(&file.0, &saved[..saved.len() - 1]).unwrap();
    refused(&load, "save it again");
    std::fs::remove_file(&file.0).unwrap();
    refused(&load, "cannot load the session");
}
