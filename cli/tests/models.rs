//! Tests of downloads, from a local server that breaks connections and reports wrong digests.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");

/// Requests so far: path and first byte.
type Seen = Arc<Mutex<Vec<(String, usize)>>>;

/// A small hub, and a cache folder.
struct Hub {
    address: String,
    seen: Seen,
    cache: PathBuf,
}

impl Hub {
    fn new(name: &str) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Seen::default();
        let requests = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = requests.clone();
                thread::spawn(move || serve(&stream, &requests));
            }
        });
        let cache = std::env::temp_dir().join(format!("anygpu-models-{name}-{}", std::process::id()));
        Hub { address, seen, cache }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
        command.args(args).env("ANYGPU_BACKEND", "cpu").env("XDG_CACHE_HOME", &self.cache).stdin(Stdio::null());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "HF_TOKEN"] {
            command.env_remove(name);
        }
        command.env("HF_ENDPOINT", &self.address).output().unwrap()
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, model: &str, part: &str) {
        let output = self.run(&["pull", model]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.lines().count() == 1 && error.contains(part), "{error:?} lacks {part:?}");
    }

    /// Returns the requests since the last call.
    fn requests(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(number: usize) -> &'static [u8] {
    [&GAB[..1000], &GAB[..2000]][number - 1]
}

/// Answers one request and closes the connection.
fn serve(mut stream: &TcpStream, seen: &Seen) {
    let lines: Vec<String> =
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else { return };
    let range =
        lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let from: usize = range.map_or(0, |range| range.trim_end_matches('-').parse().unwrap());
    let again = seen.lock().unwrap().iter().any(|(before, _)| before == path);
    seen.lock().unwrap().push((path.to_owned(), from));
    let plain = |status: &str, kind: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let file = path.rsplit('/').next().unwrap();
    let bytes = match file {
        "m-Q4_K_M.gguf" | "m-Q8_0.gguf" | "breaks.gguf" | "stops.gguf" | "wrong.gguf" | "moved.gguf" => GAB,
        "s-00001-of-00002.gguf" => part(1),
        "s-00002-of-00002.gguf" => part(2),
        _ => &[],
    };
    let listed =
        r#"{"siblings": [{"rfilename": "README.md"}, {"rfilename": "m-Q8_0.gguf"}, {"rfilename": "m-Q4_K_M.gguf"}]}"#;
    let answer = match path {
        "/api/models/o/r" => plain("200 OK", "application/json", listed),
        "/o/r/resolve/main/page.gguf" => {
            plain("200 OK", "text/html; charset=utf-8", "<!doctype html><title>No</title>")
        }
        "/o/r/resolve/main/other.gguf" => plain("200 OK", "application/octet-stream", "PK\x03\x04 something else"),
        "/o/r/resolve/main/secret.gguf" => plain("401 Unauthorized", "text/plain", "who?"),
        "/o/r/resolve/main/gated.gguf" => plain("403 Forbidden", "text/plain", "no"),
        // The hub redirects to the file, and reports its digest.
        _ if path.starts_with("/o/r/resolve/main/") && !bytes.is_empty() => {
            let told = if file == "wrong.gguf" { digest(b"another file") } else { digest(bytes) };
            format!(
                "HTTP/1.1 302 Found\r\nlocation: /store/{file}\r\nx-linked-etag: \"{told}\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        }
        _ if path.starts_with("/store/") => {
            let rest = &bytes[from..];
            let status = match from {
                0 => "HTTP/1.1 200 OK\r\n".to_owned(),
                _ => format!(
                    "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {from}-{}/{}\r\n",
                    bytes.len() - 1,
                    bytes.len()
                ),
            };
            let head = format!("{status}content-length: {}\r\nconnection: close\r\n\r\n", rest.len());
            let cut = match file {
                "breaks.gguf" if !again => rest.len() / 2,
                "stops.gguf" if from == 0 => 4321,
                "stops.gguf" => 0,
                _ => rest.len(),
            };
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&rest[..cut]));
            return;
        }
        _ => plain("404 Not Found", "text/plain", "nothing here"),
    };
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn a_model_is_fetched_once_by_any_of_its_names() {
    let hub = Hub::new("once");
    let generate = |model: &str| -> Value {
        let args = ["generate", "--prompt", "Once", "--max-tokens", "3", "--json", "--model", model];
        serde_json::from_str(&hub.done(&args)).unwrap()
    };
    let [by_hub, built_in] = ["hf:o/r", "gab"].map(generate);
    assert_eq!((&by_hub["tokens"], &by_hub["model"]), (&built_in["tokens"], &"hf:o/r".into()));
    let store = "/store/m-Q4_K_M.gguf".to_owned();
    assert_eq!(hub.requests().last(), Some(&(store, 0)));
    // A downloaded model is used without a request to the hub.
    generate("hf:o/r");
    let path = hub.done(&["pull", "hf:o/r:m-Q4_K_M.gguf"]);
    assert_eq!((std::fs::read(path.trim()).unwrap() == GAB, hub.requests()), (true, Vec::new()));
    assert!(hub.done(&["inspect", "hf:o/r"]).contains("architecture"));
    // Another file of the same model.
    hub.done(&["pull", "hf:o/r:q8_0"]);
    let listed = hub.done(&["ls"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["hf:o/r:m-Q4_K_M.gguf", "hf:o/r:m-Q8_0.gguf"]);
    let json: Value = serde_json::from_str(&hub.done(&["ls", "--json"])).unwrap();
    assert_eq!(json["models"][0]["bytes"].as_u64(), Some(GAB.len() as u64));
    hub.done(&["rm", "hf:o/r"]);
    assert_eq!(hub.run(&["rm", "hf:o/r"]).status.code(), Some(1));
    assert_eq!(hub.done(&["ls"]).lines().count(), 1);
    // The URL of a file's page means the file.
    hub.done(&["pull", &format!("{}/o/r/blob/main/moved.gguf", hub.address)]);
    assert!(hub.done(&["ls"]).contains("/o/r/resolve/main/moved.gguf"));
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke() {
    let hub = Hub::new("breaks");
    let path = hub.done(&["pull", "hf:o/r:breaks.gguf"]);
    assert!(std::fs::read(path.trim()).unwrap() == GAB);
    // First bytes of the requests for the file.
    let asked = || -> Vec<usize> {
        hub.requests().iter().filter(|(path, _)| path.starts_with("/store")).map(|(_, from)| *from).collect()
    };
    let from = asked();
    assert_eq!(from.len(), 2);
    assert!(from[0] == 0 && from[1] > 0 && from[1] <= GAB.len() / 2, "{from:?}");
    // Another process resumes a download that was interrupted.
    let path = PathBuf::from(path.trim());
    let part = path.with_extension("gguf.part");
    hub.done(&["rm", "hf:o/r:breaks.gguf"]);
    std::fs::write(&part, &GAB[..4321]).unwrap();
    std::fs::write(path.with_extension("gguf.part.tag"), digest(GAB)).unwrap();
    hub.done(&["pull", "hf:o/r:breaks.gguf"]);
    assert_eq!(asked()[0], 4321);
    assert!(std::fs::read(&path).unwrap() == GAB && !part.exists());
    // If the file has changed, the partial download is discarded.
    hub.done(&["rm", "hf:o/r:breaks.gguf"]);
    std::fs::write(&part, [7; 4321]).unwrap();
    std::fs::write(path.with_extension("gguf.part.tag"), "another").unwrap();
    hub.done(&["pull", "hf:o/r:breaks.gguf"]);
    assert_eq!(asked()[..2], [4321, 0]);
    assert!(std::fs::read(&path).unwrap() == GAB);
}

#[test]
fn what_an_interruption_leaves_is_listed_and_can_be_deleted() {
    let hub = Hub::new("stops");
    hub.refused("hf:o/r:stops.gguf", "4321 bytes of stops.gguf are here");
    let listed: Value = serde_json::from_str(&hub.done(&["ls", "--json"])).unwrap();
    let model = &listed["models"][0];
    assert_eq!((&model["model"], &model["whole"]), (&"hf:o/r:stops.gguf".into(), &false.into()));
    assert_eq!(model["bytes"].as_u64(), Some(4321));
    assert!(hub.done(&["ls"]).contains("`pull` fetches the rest"));
    hub.done(&["rm", "hf:o/r:stops.gguf"]);
    assert!(hub.done(&["ls"]).is_empty());
    let folder = PathBuf::from(model["path"].as_str().unwrap());
    assert_eq!(std::fs::read_dir(folder.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn all_files_of_a_split_model_are_fetched() {
    let hub = Hub::new("split");
    let path = PathBuf::from(hub.done(&["pull", "hf:o/r:s-00002-of-00002.gguf"]).trim());
    assert_eq!(path.file_name().unwrap(), "s-00001-of-00002.gguf");
    for number in [1, 2] {
        let file = path.with_file_name(format!("s-0000{number}-of-00002.gguf"));
        assert!(std::fs::read(file).unwrap() == part(number));
    }
    hub.done(&["rm", "hf:o/r:s-00002-of-00002.gguf"]);
    assert!(hub.done(&["ls"]).is_empty() && !path.exists());
}

#[test]
fn what_cannot_be_fetched_is_told_apart() {
    let hub = Hub::new("refused");
    hub.refused("hf:o/r:wrong.gguf", "is not what the hub says it is");
    hub.refused("hf:o/r:page.gguf", "is a web page and not a model");
    hub.refused("hf:o/r:other.gguf", "is not a GGUF file");
    hub.refused("hf:o/r:secret.gguf", "(401)");
    hub.refused("hf:o/r:gated.gguf", "(403)");
    hub.refused("hf:o/r:missing.gguf", "(404)");
    hub.refused("hf:o/missing", "(404)");
    hub.refused("hf:o/r:Q2_K", "no file with Q2_K");
    hub.refused("gab", "need not be fetched");
    hub.refused("model.gguf", "is a file's name");
    assert!(hub.done(&["ls"]).is_empty());
    assert_eq!(hub.run(&["pull", "hf:o"]).status.code(), Some(2));
    // Failed downloads leave no data behind.
    let mut left = Vec::new();
    let mut folders = vec![hub.cache.clone()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { left.push((std::fs::metadata(&path).unwrap().len(), path)) }
        }
    }
    assert!(left.iter().all(|(bytes, _)| *bytes == 0), "{left:?}");
}
