//! Downloads of files: resumed after an interruption, and verified.

use super::reference::hub;
use crate::output;
use anyhow::{Context, Error, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Agent, Body};

/// Most attempts in a row that bring nothing.
const ATTEMPTS: u32 = 4;
const REDIRECTS: usize = 8;
/// Time without data after which a server counts as gone.
const STALLED: Duration = Duration::from_secs(60);
/// Size of the longest list of files, in bytes.
const MOST_LIST: u64 = 16 << 20;

/// A downloaded file.
pub struct Fetched {
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Error of an attempt.
enum Failure {
    /// The error is permanent.
    Final(Error),
    /// The download may be tried again.
    Broken(Error),
}

/// Creates the HTTP client.
pub fn agent() -> Agent {
    let config = Agent::config_builder()
        .user_agent(concat!("anygpu/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(STALLED))
        .timeout_recv_response(Some(STALLED))
        .timeout_per_read(Some(STALLED))
        .build();
    config.new_agent()
}

/// A server's response, and what the servers on the way to it said about the file.
struct Answer {
    response: Response<Body>,
    /// SHA-256 of the file, if the hub reports it.
    sha256: Option<String>,
    /// Tag that changes with the file's contents (its ETag).
    tag: String,
}

/// Requests a file from a position on. Follows redirects.
fn get(agent: &Agent, address: &str, from: u64) -> Result<Answer, Failure> {
    let (mut at, mut sha256, mut tag) = (address.to_owned(), None, None);
    for _ in 0..=REDIRECTS {
        let mut request = agent.get(&at);
        if from > 0 {
            request = request.header("range", format!("bytes={from}-"));
        }
        if let Some(token) = token(&at) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.call().map_err(|error| failed(error, address))?;
        let headers = response.headers();
        // The hub describes the file before it redirects to it.
        let linked = header(headers, "x-linked-etag").map(|tag| tag.trim_matches('"').to_ascii_lowercase());
        tag = tag.or_else(|| linked.clone()).or_else(|| header(headers, "etag").map(str::to_owned));
        let is_digest = |tag: &String| tag.len() == 64 && tag.chars().all(|c| c.is_ascii_hexdigit());
        sha256 = sha256.or(linked.filter(is_digest));
        if !response.status().is_redirection() {
            return Ok(Answer { response, sha256, tag: tag.unwrap_or_default() });
        }
        let next = header(headers, "location").and_then(|next| joined(&at, next));
        at =
            next.ok_or_else(|| Failure::Final(anyhow!("{address} leads nowhere ({}); check it", response.status())))?;
    }
    Err(Failure::Final(anyhow!("{address} leads from one address to the next without end; check it")))
}

/// Returns the user's access token, which only the hub gets.
fn token(address: &str) -> Option<String> {
    let token = env::var("HF_TOKEN").ok().filter(|token| !token.is_empty())?;
    address.strip_prefix(&hub())?.starts_with('/').then_some(token)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Resolves the target of a redirect.
fn joined(at: &str, next: &str) -> Option<String> {
    if next.starts_with("https://") || (next.starts_with("http://") && at.starts_with("http://")) {
        return Some(next.into());
    }
    let scheme = at.find("://")? + 3;
    let host = at[scheme..].find('/').map_or(at.len(), |end| scheme + end);
    (next.starts_with('/') && !next.starts_with("//")).then(|| format!("{}{next}", &at[..host]))
}

fn failed(error: ureq::Error, address: &str) -> Failure {
    let is_final = matches!(error, ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::Tls(_));
    let error = anyhow!("{address} cannot be reached ({error}); check it and the network");
    if is_final { Failure::Final(error) } else { Failure::Broken(error) }
}

/// Returns the error for a status other than success.
fn refused(status: StatusCode, address: &str) -> Failure {
    let what = match status.as_u16() {
        401 => {
            "wants to know who asks (401): the model is not public, or is not there; check the name, or set HF_TOKEN to a token that may read it"
        }
        403 => "may not be read (403): ask for access on the model's page, or use another token or model",
        404 | 410 => "is not there (404); check owner, name and file",
        429 | 500.. => "cannot be had now: the server is busy or broken; try again later",
        _ => "cannot be had; check it",
    };
    let error = anyhow!("{address} {what}").context(format!("the server answers {status}"));
    if matches!(status.as_u16(), 429 | 500..) { Failure::Broken(error) } else { Failure::Final(error) }
}

fn web_page(address: &str) -> Failure {
    Failure::Final(anyhow!("{address} is a web page and not a model; give the address of the file itself"))
}

/// Repeats an attempt while another one may help. `came` returns the bytes so far: an attempt that brought some starts
/// the count anew.
fn persist<T>(mut attempt: impl FnMut() -> Result<T, Failure>, mut came: impl FnMut() -> u64) -> Result<T> {
    let (mut failures, mut before) = (0, came());
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Broken(error)) => error,
        };
        let now = came();
        failures = if now > before { 1 } else { failures + 1 };
        before = now;
        if failures >= ATTEMPTS {
            return Err(error);
        }
        sleep(Duration::from_millis(125) * 2u32.pow(failures));
    }
}

/// Downloads a short text, such as a list of files.
///
/// *Errors*: the text cannot be downloaded, or is too long.
pub fn fetch_text(address: &str) -> Result<String> {
    let agent = agent();
    let attempt = || {
        let mut answer = get(&agent, address, 0)?.response;
        if answer.status() != StatusCode::OK {
            return Err(refused(answer.status(), address));
        }
        let read = answer.body_mut().with_config().limit(MOST_LIST).read_to_string();
        read.map_err(|error| failed(error, address))
    };
    persist(attempt, || 0)
}

/// Downloads a file unless it exists. After an interruption the downloaded part is kept, and the next call resumes it.
///
/// *Errors*: the file cannot be downloaded, is not a GGUF file, or does not have the digest that the hub reports.
pub fn fetch(address: &str, path: &Path) -> Result<Fetched> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.exists() {
        return digest(&mut File::open(path)?);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let part = beside(path, "part");
    let write = || format!("cannot write {}", part.display());
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part).with_context(write)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            output::note(&format!("another anygpu is fetching {name}; waiting for it"));
            file.lock()?;
        }
        // Some systems cannot lock files. There the user must not download a file twice at a time.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    if path.exists() {
        return digest(&mut File::open(path)?);
    }
    let bar = ProgressBar::new(0).with_message(name.clone());
    bar.set_style(ProgressStyle::with_template("fetching {msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")?);
    let (agent, watched) = (agent(), file.try_clone()?);
    let came = || watched.metadata().map_or(0, |metadata| metadata.len());
    let fetched = persist(|| attempt(&agent, address, &part, &mut file, &bar), came);
    bar.finish_and_clear();
    let expected = match (fetched, came()) {
        (Ok(expected), _) => expected,
        (Err(error), 0) => {
            // The first error is the one to report.
            let _ = fs::remove_file(beside(&part, "tag")).and(fs::remove_file(&part));
            return Err(error);
        }
        (Err(error), kept) => {
            let resumed = format!("{kept} bytes of {name} are here, and the same command goes on from there");
            return Err(error.context(resumed));
        }
    };
    let found = digest(&mut file)?;
    if expected.is_some_and(|expected| expected != found.sha256) {
        file.set_len(0)?;
        let _ = fs::remove_file(beside(&part, "tag"));
        fs::remove_file(&part)?;
        let remedy = "what was fetched is deleted; try again";
        return Err(anyhow!("{name} is not what the hub says it is: its SHA-256 is {}; {remedy}", found.sha256));
    }
    file.sync_all()?;
    fs::rename(&part, path)?;
    let _ = fs::remove_file(beside(&part, "tag"));
    output::note(&format!("fetched {name} ({:.1} MB)", found.bytes as f64 / 1e6));
    Ok(found)
}

/// Appends an ending to a file's name.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Downloads the missing rest. Returns the digest that the hub reports, if it does.
fn attempt(
    agent: &Agent,
    address: &str,
    part: &Path,
    file: &mut File,
    bar: &ProgressBar,
) -> Result<Option<String>, Failure> {
    let write =
        |error: io::Error| Failure::Final(Error::new(error).context(format!("cannot write {}", part.display())));
    let from = file.seek(SeekFrom::End(0)).map_err(write)?;
    let Answer { mut response, sha256, tag } = get(agent, address, from)?;
    let tags = beside(part, "tag");
    let headers = response.headers();
    let range = header(headers, "content-range").and_then(range_of);
    let mut at = match (response.status().as_u16(), range) {
        (200, _) => 0,
        (206, Some((first, _))) if first == from && fs::read_to_string(&tags).is_ok_and(|before| before == tag) => from,
        // The file has changed, or the local part is longer than the file.
        (206 | 416, _) => {
            file.set_len(0).map_err(write)?;
            return Err(Failure::Broken(anyhow!("{address} changes while it is read; try again later")));
        }
        _ => return Err(refused(response.status(), address)),
    };
    if header(headers, "content-type").is_some_and(|kind| kind.starts_with("text/html")) {
        return Err(web_page(address));
    }
    let total = match at {
        0 => header(headers, "content-length").and_then(|length| length.parse().ok()),
        _ => range.and_then(|(_, total)| total),
    };
    if at == 0 {
        file.set_len(0).map_err(write)?;
        file.rewind().map_err(write)?;
        fs::write(&tags, &tag).map_err(write)?;
    }
    bar.set_length(total.unwrap_or(0));
    let mut body = response.body_mut().as_reader();
    let mut bytes = vec![0; 256 << 10];
    loop {
        let read = body.read(&mut bytes);
        let read = read.map_err(|error| Failure::Broken(anyhow!("the connection to {address} broke ({error})")))?;
        if read == 0 {
            break;
        }
        if at == 0 && !b"GGUF".starts_with(&bytes[..read.min(4)]) {
            let is_markup = bytes[..read].trim_ascii_start().starts_with(b"<");
            let other = || Failure::Final(anyhow!("{address} is not a GGUF file; give the address of one"));
            return Err(if is_markup { web_page(address) } else { other() });
        }
        file.write_all(&bytes[..read]).map_err(write)?;
        at += read as u64;
        bar.set_position(at);
    }
    match total {
        Some(total) if at < total => {
            Err(Failure::Broken(anyhow!("the connection to {address} broke at {at} of {total} bytes")))
        }
        _ => Ok(sha256),
    }
}

/// Parses a `Content-Range` header: the beginning of the range, and the length of the whole.
fn range_of(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split('-').next()?.parse().ok()?, total.parse().ok()))
}

fn digest(file: &mut File) -> Result<Fetched> {
    let (mut sha256, mut bytes) = (Sha256::new(), vec![0; 256 << 10]);
    file.rewind()?;
    let mut all = 0;
    loop {
        let read = file.read(&mut bytes)?;
        if read == 0 {
            let digits = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok(Fetched { bytes: all, sha256: digits });
        }
        sha256.update(&bytes[..read]);
        all += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_refer_to_others() {
        assert_eq!(joined("https://h/a/b", "/c?d").as_deref(), Some("https://h/c?d"));
        assert_eq!(joined("https://h", "https://i/c").as_deref(), Some("https://i/c"));
        for next in ["http://h/c", "file:///etc/passwd", "//i/c", "c"] {
            assert_eq!(joined("https://h/a", next), None, "{next}");
        }
        assert_eq!(range_of("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!([range_of("bytes */10"), range_of("5-9/10")], [None, None]);
    }
}
