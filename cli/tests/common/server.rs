//! A server for one test, and a client.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.arg("serve").args(args).env("ANYGPU_BACKEND", "cpu").env("ANYGPU_THREADS", "1").stdin(Stdio::null());
    command
}

/// A server for one test. It ends when it is dropped.
pub struct Server {
    child: Child,
    pub address: String,
    /// Lines with its address and an example of a request.
    pub greeting: String,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    pub fn new(args: &[&str]) -> Server {
        let mut child = command(&["--port", "0"]).args(args).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("curl ") {
            assert!(stderr.read_line(&mut greeting).unwrap() > 0, "it ended: {greeting}");
        }
        let address = greeting.split("http://").nth(1).unwrap().split("/v1").next().unwrap().to_owned();
        assert!(greeting.starts_with("serving ") && greeting.contains("on cpu"), "{greeting}");
        Server { child, address, greeting, stderr }
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        self.send_to("localhost", method, path, headers, body)
    }

    /// Sends a request with this name in the `Host` header.
    fn send_to(&self, host: &str, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n");
        stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    /// Sends a request with this `Host` header. Returns the status, the head and the body of the response.
    pub fn ask_as(&self, host: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut response = String::new();
        self.send_to(host, method, path, headers, body).read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    /// Sends a request. Returns the status, the head and the body of the response.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        self.ask_as("localhost", method, path, headers, body)
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, "", "");
        (status, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", path, JSON, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Sends a request for a stream. Returns the stream's events.
    pub fn stream(&self, path: &str, body: &Value) -> Vec<String> {
        let (status, head, body) = self.ask("POST", path, JSON, &body.to_string());
        assert!(status == 200 && head.contains("content-type: text/event-stream"), "{head}");
        body.lines().filter_map(|line| line.strip_prefix("data: ")).map(Into::into).collect()
    }

    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").1;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Sends a signal and waits until the server ends. Returns its exit code and the rest of its standard error.
    pub fn end(mut self, signal: &str) -> (Option<i32>, String) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const JSON: &str = "Content-Type: application/json\r\n";
pub const TEXT: &str = "/v1/completions";
pub const CHAT: &str = "/v1/chat/completions";

/// Returns the path of a file in `models/fixtures`.
pub fn fixture(name: &str) -> String {
    format!("{}/../models/fixtures/{name}.gguf", env!("CARGO_MANIFEST_DIR"))
}

/// Returns tools with these names.
pub fn tools(names: &[&str]) -> Value {
    let tool =
        |name: &&str| json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } });
    names.iter().map(tool).collect()
}
