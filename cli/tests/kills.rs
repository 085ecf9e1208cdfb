//! Test of saved sessions: a process that is killed while it generates continues from its last save.

#![cfg(unix)]

use anygpu::Snapshot;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

/// Number of texts, unless `ANYGPU_KILLS` sets it, and number of times that a text's process is killed.
const TEXTS: u64 = 3;
const KILLS: usize = 4;

const ASKED: [&str; 9] =
    ["--prompt", "One day", "--max-tokens", "96", "--temperature", "1", "--seed", "7", "--ignore-eos"];

fn generate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.arg("generate").args(args).arg("--json").env("ANYGPU_BACKEND", "cpu");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns all tokens of a text that is generated to its end.
fn finished(command: &mut Command) -> Vec<u64> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tokens = |name: &str| report[name].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    let [prompt, new]: [Vec<u64>; 2] = ["prompt_tokens", "tokens"].map(tokens);
    [prompt, new].concat()
}

/// Returns the number of tokens in a file; 0 if the file does not exist.
fn saved(file: &Path) -> usize {
    let Ok(bytes) = std::fs::read(file) else { return 0 };
    Snapshot::from_bytes(&bytes).unwrap_or_else(|error| panic!("{file:?}: {error}")).tokens().len()
}

#[test]
fn what_was_saved_outlives_processes_that_are_killed_at_any_moment() {
    let folder = std::env::temp_dir().join(format!("anygpu-kills-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let begin = Instant::now();
    let whole = finished(&mut generate(&ASKED));
    // Time of a process to start, to load the model, and to generate the whole text.
    let span = begin.elapsed();
    let texts = std::env::var("ANYGPU_KILLS").map_or(TEXTS, |count| count.parse().unwrap());
    let (mut killed, mut in_the_middle) = (0, 0);
    for seed in 0..texts {
        let file: PathBuf = folder.join(format!("{seed}.session"));
        let path = file.to_str().unwrap();
        let save = ["--save-session", path, "--save-every", if seed % 2 == 0 { "0" } else { "0.05" }];
        let mut random = SmallRng::seed_from_u64(seed);
        let mut known = 0;
        let next = |known: usize| match known {
            0 => generate(&[&ASKED[..], &save].concat()),
            _ => generate(&[&["--load-session", path][..], &save].concat()),
        };
        for _ in 0..KILLS {
            let mut process = next(known).spawn().unwrap();
            sleep(span.mul_f64(random.random_range(0.2..0.8)));
            killed += usize::from(process.try_wait().unwrap().is_none());
            process.kill().unwrap();
            process.wait().unwrap();
            let now = saved(&file);
            assert!(now >= known, "text {seed}: {known} tokens were saved, and {now} are left");
            in_the_middle += usize::from(now > known && now < whole.len());
            known = now;
            if known >= whole.len() {
                break;
            }
        }
        let text = if known < whole.len() { finished(&mut next(known)) } else { whole.clone() };
        assert_eq!(text, whole, "text {seed}");
    }
    println!("{killed} processes were killed, {in_the_middle} in the middle of what they wrote");
    assert!(killed > 0 && in_the_middle > 0, "{killed} were killed, {in_the_middle} in the middle");
    std::fs::remove_dir_all(&folder).unwrap();
}
