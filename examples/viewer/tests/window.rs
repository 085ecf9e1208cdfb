//! Test of the window: it shows the engine's story, and the picture has the values that are on the GPU.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{
    Backend, BytesSource, Engine, EngineOptions, GenerateOptions, Host, Sampling, Seam, Stage, StageOutput, StageStep,
};
use backend_webgl::WebGl;
use backend_webgpu::WebGpu;
use serde_json::Value;

const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");

/// A virtual display on Linux that is large enough.
struct Display {
    name: Option<String>,
    server: Option<Child>,
}

impl Display {
    fn open() -> Display {
        if cfg!(not(target_os = "linux")) {
            return Display { name: None, server: None };
        }
        // Xvfb prints its number when it accepts connections.
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("apt-get install xvfb");
        let mut number = String::new();
        let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut number).unwrap();
        Display { name: Some(format!(":{}", number.trim())), server: Some(server) }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu-viewer"));
        command.args(args).envs(self.name.iter().map(|name| ("DISPLAY", name)));
        command.output().unwrap()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

/// Returns whether `ANYGPU_SKIP` names this backend, or displays.
fn is_skipped(backend: &str) -> bool {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let named = skip.split(',').map(str::trim).find(|name| [backend, "display"].contains(name));
    if let Some(named) = named {
        println!("SKIPPED: ANYGPU_SKIP names {named}");
    }
    named.is_some()
}

/// Creates an engine on a device of its own.
fn engine(backend: Box<dyn Backend>, stage: Option<Stage>) -> Engine {
    let options = EngineOptions { stage, ..EngineOptions::default() };
    let host = Rc::new(NativeHost::default());
    block_on(Engine::with_backend(backend, &BytesSource(GAB), &options, host, &mut |_| {})).unwrap()
}

/// Returns the activations after the last block, for the last of some tokens.
fn hidden(backend: Box<dyn Backend>, tokens: &[u32]) -> Vec<f32> {
    let engine = engine(backend, Some(Stage { embed: true, blocks: 0..6, head: false }));
    let mut session = engine.stage_session(Seam::F32).unwrap();
    let host: &dyn Host = &NativeHost::default();
    let mut last = Vec::new();
    // One token at a time: software backends take seconds to compile kernels of several rows.
    for (position, token) in tokens.iter().enumerate() {
        let step = StageStep { position, tokens: &[*token], hidden: &[], choose: false };
        let StageOutput::Hidden(bytes) = block_on(session.step(&step, host)).unwrap() else { panic!("it has no head") };
        last = bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    }
    last
}

/// Returns the colour that the legend has for a value.
fn colour(value: f32) -> [f32; 3] {
    let hue = if value < 0.0 { [0.25, 0.65, 1.0] } else { [1.0, 0.62, 0.15] };
    let t = ((1.0 + 100.0 * value.abs()).ln() / 10001f32.ln()).min(1.0);
    [0, 1, 2].map(|i| 255.0 * ([0.10, 0.11, 0.13][i] * (1.0 - t) + hue[i] * t))
}

/// Reads numbers of a report.
fn numbers<const N: usize>(value: &Value) -> [u32; N] {
    std::array::from_fn(|i| value[i].as_f64().unwrap() as u32)
}

fn shows_a_story(name: &str, open: impl Fn() -> Box<dyn Backend>) -> Value {
    let file = std::env::temp_dir().join(format!("anygpu-viewer-{name}-{}.png", std::process::id()));
    let path = file.to_str().unwrap();
    let args = ["--backend", name, "--tokens", "8", "--seed", "7", "--speed", "1000", "--screenshot", path];
    let output = Display::open().run(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();

    let engine = engine(open(), None);
    let prompt = engine.encode("Once upon a time").unwrap();
    let sampling = Sampling::Random { temperature: 0.8, top_k: 40, top_p: 0.95, seed: 7 };
    let options = GenerateOptions { max_tokens: Some(8), sampling, ..engine.generate_options() };
    let story = block_on(engine.generate(&mut engine.session().unwrap(), &prompt, &options, &mut |_| {})).unwrap();
    assert_eq!(report["text"], story.text.as_str());
    let tokens: Vec<u32> = [prompt, story.tokens].concat();
    assert_eq!(report["tokens"], serde_json::json!(tokens));

    // The last step has seen all tokens but the one that it made.
    let position = report["position"].as_u64().unwrap() as usize;
    assert_eq!(position, tokens.len() - 2);
    let tiles = report["tiles"].as_array().unwrap();
    let tile = tiles.iter().find(|tile| tile["label"] == "after feed-forward" && tile["block"] == 5).unwrap();
    let [wide, high]: [u32; 2] = numbers(&tile["texels"]);
    let [x, y, width, height]: [u32; 4] = numbers(&tile["pixels"]);
    let picture = image::open(&file).unwrap().to_rgb8();
    std::fs::remove_file(&file).unwrap();
    let values = hidden(open(), &tokens[..=position]);
    assert_eq!(values.len(), (wide * high) as usize);
    for (at, value) in (0u32..).zip(&values) {
        let [dot_x, dot_y] =
            [x + (2 * (at % wide) + 1) * width / (2 * wide), y + (2 * (at / wide) + 1) * height / (2 * high)];
        let (seen, expected) = (picture.get_pixel(dot_x, dot_y).0, colour(*value));
        let is_near = seen.iter().zip(expected).all(|(seen, expected)| (f32::from(*seen) - expected).abs() < 2.0);
        assert!(is_near, "{name}: element {at} is {value}, so {expected:?}, and {seen:?} is drawn");
    }
    let mut places: Vec<_> = tiles.iter().map(|tile| tile["place"].as_u64()).collect();
    places.sort_unstable();
    places.dedup();
    assert!(tiles.len() > 20 && places.len() < 8, "{} matrices lie in {} places", tiles.len(), places.len());
    report
}

#[test]
fn the_window_shows_a_story_on_webgpu() {
    if !is_skipped("webgpu") {
        shows_a_story("webgpu", || Box::new(block_on(WebGpu::open(Default::default())).unwrap()));
    }
}

#[test]
fn the_window_shows_a_story_on_webgl() {
    if !is_skipped("webgl") {
        let report = shows_a_story("webgl", || Box::new(WebGl::open(Default::default()).unwrap()));
        let is_scores = |tile: &&Value| tile["kernel"].as_str().unwrap().starts_with("attention_scores");
        let scores = report["tiles"].as_array().unwrap().iter().filter(is_scores).count();
        assert_eq!(scores, 6, "each block has scores of attention");
    }
}

#[test]
fn what_goes_wrong_is_said() {
    if !is_skipped("webgl") {
        let file: PathBuf = std::env::temp_dir().join("anygpu-viewer-nothing.png");
        let args = ["--backend", "webgl", "--model", "nothing.gguf", "--screenshot", file.to_str().unwrap()];
        let output = Display::open().run(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("cannot open the model nothing.gguf"), "{said}");
        assert!(!file.exists());
    }
}
