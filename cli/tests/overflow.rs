//! Tests of texts that outgrow the context.

use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};

fn anygpu(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(args).env("ANYGPU_BACKEND", "cpu").stdin(Stdio::null()).output().unwrap()
}

/// Generates from a prompt of 4 tokens in a context of 32.
fn generate(args: &[&str]) -> Output {
    let common = ["generate", "--n-ctx", "32", "--prompt", "Once upon a time", "--ignore-eos"];
    anygpu(&[&common[..], args].concat())
}

fn report(args: &[&str]) -> Value {
    let output = generate(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(report: &Value) -> usize {
    report["tokens"].as_array().unwrap().len()
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers_unless_a_policy_says_otherwise() {
    let output = generate(&["--max-tokens", "29"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    for word in ["4 tokens", "29", "32", "n_ctx", "stop", "shift"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let fits = report(&["--max-tokens", "28"]);
    assert_eq!((count(&fits), &fits["overflow"]), (28, &Value::Null));
    // Without --max-tokens, the text gets as many tokens as there is room for.
    for args in [&[][..], &["--overflow", "stop"], &["--overflow", "stop", "--max-tokens", "29"]] {
        let full = report(args);
        assert_eq!((&full["tokens"], &full["finish"]), (&fits["tokens"], &"length".into()));
        assert_eq!(full["overflow"], json!({ "policy": "stop", "dropped_tokens": 0, "times": 0, "ms": 0.0 }));
    }
    let shown = generate(&["--overflow", "stop"]);
    assert!(String::from_utf8_lossy(&shown.stderr).contains("--overflow shift"));
}

#[test]
fn old_tokens_make_room_and_a_saved_text_goes_on_from_what_is_left() {
    let file = std::env::temp_dir().join(format!("anygpu-overflow-{}.session", std::process::id()));
    let path = file.to_str().unwrap();
    let shift = ["--overflow", "shift", "--keep", "2", "--temperature", "1", "--seed", "3"];
    let whole = report(&[&shift[..], &["--max-tokens", "70"]].concat());
    assert_eq!((count(&whole), &whole["finish"]), (70, &"length".into()));
    // Each shift drops 15 of 30 tokens.
    assert_eq!((&whole["overflow"]["dropped_tokens"], &whole["overflow"]["times"]), (&45.into(), &3.into()));
    assert!(whole["overflow"]["policy"] == "shift" && whole["overflow"]["ms"].as_f64().unwrap() > 0.0);

    let begin = report(&[&shift[..], &["--max-tokens", "50", "--save-session", path]].concat());
    let rest = ["generate", "--n-ctx", "32", "--load-session", path, "--ignore-eos", "--max-tokens", "20", "--json"];
    let output = anygpu(&[&rest[..], &shift[..4]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let end: Value = serde_json::from_slice(&output.stdout).unwrap();
    // 2 tokens that are kept, and the tokens after the dropped ones.
    assert_eq!(end["prompt_tokens"].as_array().unwrap().len(), 4 + 50 - 30);
    let tokens = |report: &Value| report["tokens"].as_array().unwrap().clone();
    assert_eq!([tokens(&begin), tokens(&end)].concat(), tokens(&whole));
    std::fs::remove_file(&file).unwrap();

    let shown = generate(&["--overflow", "shift", "--max-tokens", "40"]);
    assert!(String::from_utf8_lossy(&shown.stderr).contains("old tokens made room"));
}

#[test]
fn policies_that_make_no_sense_are_refused_in_one_line() {
    let refused = |args: &[&str], code: i32, what: &str| {
        let output = generate(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(code), 1), "{error}");
        assert!(error.contains(what) && error.len() < 300, "{error}");
    };
    refused(&["--overflow", "truncate"], 2, "error, stop, shift");
    refused(&["--keep", "1"], 1, "overflow policy shift");
    refused(&["--overflow", "shift", "--keep", "31"], 1, "keep fewer");
    // A message that does not fit, without an older turn to drop.
    let long = "dragon ".repeat(40);
    let output = anygpu(&["generate", "--n-ctx", "32", "--chat", "--overflow", "shift", "--prompt", &long]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.lines().count() == 1, "{error}");
    assert!(error.contains("shorten the prompt"), "{error}");
}
