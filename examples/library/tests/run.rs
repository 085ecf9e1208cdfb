//! Every example runs as it is, from the repository's folder.

use std::path::Path;
use std::process::Command;

fn run(program: &str, args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(program).args(args).current_dir(root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Whether a test may need the driver of WebGPU.
fn has_webgpu() -> bool {
    let skipped = std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgpu"));
    if skipped {
        println!("SKIPPED: ANYGPU_SKIP names webgpu");
    }
    !skipped
}

#[test]
fn hello_tells_a_story() {
    let text = run(env!("CARGO_BIN_EXE_hello"), &[]);
    assert!(text.starts_with("Once upon a time, there was") && text.contains("60 tokens on "), "{text}");
}

#[test]
fn chat_answers_twice_and_goes_on_with_what_it_computed() {
    let text = run(env!("CARGO_BIN_EXE_chat"), &["models/fixtures/by-heart.gguf"]);
    let computed: Vec<usize> =
        text.lines().filter_map(|line| line.strip_prefix('(')?.split(' ').next()?.parse().ok()).collect();
    assert!(computed.len() == 2 && computed[1] > computed[0], "{text}");
    assert_eq!(text.lines().filter(|line| *line == "It is warm.").count(), 2, "{text}");
}

#[test]
fn json_follows_its_schema() {
    let pet: serde_json::Value = serde_json::from_str(&run(env!("CARGO_BIN_EXE_json"), &[])).unwrap();
    assert!(pet["age"].as_u64().is_some_and(|age| age <= 120) && pet["name"].is_string(), "{pet}");
    assert!(["cat", "dog"].contains(&pet["kind"].as_str().unwrap()) && pet.as_object().unwrap().len() == 3, "{pet}");
}

#[test]
fn embed_tells_how_near_texts_are() {
    let text = run(env!("CARGO_BIN_EXE_embed"), &["models/fixtures/bert-mean.gguf"]);
    let near: Vec<f32> = text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(near.len() == 2 && near.iter().all(|near| (-1.001..1.001).contains(near)), "{text}");
}

#[test]
fn a_custom_graph_is_the_same_on_both_backends() {
    if has_webgpu() {
        let text = run(env!("CARGO_BIN_EXE_custom_graph"), &[]);
        let nmse: f64 = text.split("NMSE ").nth(1).unwrap().trim().parse().unwrap();
        assert!(nmse < 1e-4, "{text}");
    }
}

#[test]
fn a_backend_of_ones_own_passes_what_it_has() {
    let text = run(env!("CARGO_BIN_EXE_own_backend"), &[]);
    assert!(text.lines().count() == 3 && text.lines().all(|line| line.ends_with(" 0 failed")), "{text}");
    assert!(!text.contains("scale: 0 passed") && !text.contains("binary: 0 passed"), "{text}");
    assert!(text.contains("matmul: 0 passed"), "{text}");
}

#[test]
fn stages_tell_a_story_together() {
    let text = run(env!("CARGO_BIN_EXE_stages"), &[]);
    assert!(
        text.contains("Once upon a time, there was") && text.contains("3 stages: ") && text.contains("2048 bytes"),
        "{text}"
    );
}

#[test]
fn a_device_is_shared() {
    if has_webgpu() {
        let text = run(env!("CARGO_BIN_EXE_shared_device"), &[]);
        let frames = text.split_once("\nand ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<usize>().ok());
        assert!(text.starts_with("Once upon a time, there was") && frames.is_some_and(|frames| frames >= 12), "{text}");
    }
}
