//! Tests of split models: any file may be named if the others are in the same folder.

#[path = "../../model/tests/common/split.rs"]
mod split;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");

/// A folder with a split model. It is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anygpu-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (i, file) in split::split(GAB, &[0, 10]).iter().enumerate() {
            std::fs::write(path.join(format!("gab-{:05}-of-00003.gguf", i + 1)), file).unwrap();
        }
        Folder(path)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.0.join(format!("gab-{number:05}-of-00003.gguf"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn generate(model: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(["generate", "--prompt", "Once upon a time", "--max-tokens", "16", "--greedy", "--json", "--model"]);
    command.arg(model).env("ANYGPU_BACKEND", "cpu").stdin(Stdio::null()).output().unwrap()
}

fn tokens(model: &Path) -> Value {
    let output = generate(model);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    json["tokens"].clone()
}

#[track_caller]
fn refused(model: &Path, parts: &[&str]) {
    let output = generate(model);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

#[test]
fn any_file_of_a_split_model_stands_for_it() {
    let folder = Folder::new("split");
    let whole = tokens(Path::new("gab"));
    for number in 1..=3 {
        assert_eq!(tokens(&folder.file(number)), whole, "file {number}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new("missing");
    // A name that does not follow the scheme of split models.
    let middle = folder.0.join("middle.gguf");
    std::fs::rename(folder.file(2), &middle).unwrap();
    refused(&middle, &["3 files", "*-00001-of-00003.gguf, *-00003-of-00003.gguf", "in one folder"]);
    refused(&folder.file(1), &["gab-00001-of-00003.gguf", "\"gab-00002-of-00003.gguf\"", "into one folder"]);
    std::fs::copy(folder.file(1), folder.file(2)).unwrap();
    refused(&folder.file(3), &["file 1", "twice"]);
    std::fs::write(folder.file(2), &std::fs::read(&middle).unwrap()[..5000]).unwrap();
    refused(&folder.file(1), &["number 2", "truncated"]);
}
