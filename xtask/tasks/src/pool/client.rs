//! A client of a pool.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Time in which something has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of what listens at a port of this machine.
#[derive(Clone, Copy)]
pub struct Client(pub u16);

impl Client {
    /// Returns the coordinator's state of the pool.
    pub fn state(&self) -> Result<Value> {
        self.get("/state.json")
    }

    /// Returns the JSON at a path.
    pub fn get(&self, path: &str) -> Result<Value> {
        let mut answer = String::new();
        self.send("GET", path, "", "")?.read_to_string(&mut answer).with_context(|| format!("cannot read {path}"))?;
        let (_, body) = answer.split_once("\r\n\r\n").with_context(|| format!("{path} is not answered"))?;
        serde_json::from_str(body).with_context(|| format!("{path} is not JSON"))
    }

    /// Asks for a text, as a stream. The same key is the same answer.
    pub fn ask(&self, request: &Value, key: &str) -> Result<Answer> {
        let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
        let stream = self.send("POST", "/v1/completions", &headers, &request.to_string())?;
        Ok(Answer(BufReader::new(stream)))
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0)).context("the coordinator cannot be reached")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n");
        stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes())?;
        Ok(stream)
    }
}

/// An answer as it comes.
pub struct Answer(BufReader<TcpStream>);

impl Answer {
    /// The text of the next token, if there is one.
    pub fn token(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).context("the answer does not go on")? == 0 {
                bail!("the answer ends without an end");
            }
            let Some(data) = line.trim_end().strip_prefix("data: ") else { continue };
            if data == "[DONE]" {
                return Ok(None);
            }
            let event: Value = serde_json::from_str(data).with_context(|| format!("the answer has {data:?}"))?;
            if let Some(error) = event.get("error") {
                bail!("the answer ends with {error}");
            }
            return Ok(Some(event["choices"][0]["text"].as_str().unwrap_or_default().to_owned()));
        }
    }

    /// The text of so many further tokens, or all that is left.
    pub fn read(&mut self, tokens: usize) -> Result<String> {
        let mut text = String::new();
        for _ in 0..tokens {
            match self.token().with_context(|| format!("after {text:?}"))? {
                Some(token) => text.push_str(&token),
                None => break,
            }
        }
        Ok(text)
    }
}
