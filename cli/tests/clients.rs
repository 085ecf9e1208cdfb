//! Tests of requests as clients of other servers send them: agents, frameworks and web pages.

mod common;

use common::server::{CHAT, JSON, Server, TEXT, fixture};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

const EMBEDDINGS: &str = "/v1/embeddings";

/// Returns the status of a response, its body, and its warnings.
fn asked(server: &Server, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
    let (status, head, body) = server.ask("POST", path, JSON, &body.to_string());
    let warnings = head.lines().filter_map(|line| line.strip_prefix("x-anygpu-warning: ")).map(Into::into).collect();
    (status, serde_json::from_str(&body).unwrap(), warnings)
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn limits_beyond_the_context_end_with_it() {
    let server = Server::new(&["--n-ctx", "64"]);
    let most = json!({ "prompt": "Once upon a time", "ignore_eos": true });
    let text = |more: Value| {
        let (status, answer, _) = asked(&server, TEXT, &with(most.clone(), &more));
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        (answer["usage"]["completion_tokens"].clone(), answer["choices"][0]["text"].clone())
    };
    let whole = text(json!({}));
    assert_eq!(whole.0, 60);
    for more in [json!({ "max_tokens": 32_000 }), json!({ "max_tokens": -1, "seed": -1, "top_k": -1 })] {
        assert_eq!(text(more.clone()), whole, "{more}");
    }
    assert_eq!(text(json!({ "max_tokens": 5.0 })).0, 5);
    let error = json!({ "max_tokens": 32_000, "overflow": "error" });
    assert_eq!(asked(&server, TEXT, &with(most, &error)).1["error"]["code"], "context_length_exceeded");
}

#[test]
fn what_changes_nothing_is_answered_with_a_warning_and_refused_by_a_strict_server() {
    let server = Server::new(&[]);
    let messages = json!([{ "role": "user", "content": [{ "type": "text", "text": "Hi", "cache_control": { "type": "ephemeral" } }],
        "name": "ada", "cache_control": { "type": "ephemeral" } }]);
    let odd = json!({ "messages": messages, "max_tokens": 2, "no_such": 1, "store": true, "seed": -7 });
    let (status, answer, warnings) = asked(&server, CHAT, &odd);
    assert_eq!(status, 200, "{answer}");
    let begins = ["messages[0].name is not read", "no_such is not known", "store cannot be"];
    assert_eq!(warnings.len(), begins.len(), "{warnings:?}");
    assert!(begins.iter().all(|begin| warnings.iter().any(|warning| warning.starts_with(begin))), "{warnings:?}");
    let plain = json!({ "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 2, "stream": true });
    let (_, head, _) = server.ask("POST", CHAT, JSON, &plain.to_string());
    assert!(!head.contains("x-anygpu-warning"), "{head}");
    let (_, head, _) = server.ask("POST", CHAT, JSON, &with(plain, &json!({ "täg\n": 1 })).to_string());
    assert!(head.contains("x-anygpu-warning: t?g? is not known"), "{head}");

    let strict = Server::new(&["--strict"]);
    for more in [json!({ "no_such": 1 }), json!({ "store": true })] {
        let body = with(json!({ "prompt": "a", "max_tokens": 1 }), &more);
        let (status, refused, _) = asked(&strict, TEXT, &body);
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("unknown_parameter")), "{refused}");
    }
    assert_eq!(asked(&strict, CHAT, &with(odd, &json!({ "no_such": null, "store": null }))).0, 400);
}

#[test]
fn several_prompts_have_answers_by_their_index() {
    let server = Server::new(&[]);
    let body = |prompt: Value| json!({ "prompt": prompt, "max_tokens": 6, "temperature": 1, "seed": 3, "n": 2 });
    let texts = |answer: &Value| -> Vec<Value> {
        answer["choices"].as_array().unwrap().iter().map(|choice| choice["text"].clone()).collect()
    };
    let (status, both, _) = asked(&server, TEXT, &body(json!(["Once upon a time", "One day"])));
    assert_eq!(status, 200, "{both}");
    let indexes = both["choices"].as_array().unwrap().iter().map(|choice| choice["index"].clone());
    assert_eq!(indexes.collect::<Vec<_>>(), [0, 1, 2, 3].map(Value::from));
    let (_, first, _) = asked(&server, TEXT, &body(json!("Once upon a time")));
    let (_, second, _) = asked(&server, TEXT, &body(json!("\u{feff}One day")));
    assert_eq!(texts(&both), [texts(&first), texts(&second)].concat());
    let count = |answer: &Value, of: &str| answer["usage"][of].as_u64().unwrap();
    for of in ["prompt_tokens", "completion_tokens"] {
        assert_eq!(count(&both, of), count(&first, of) + count(&second, of), "{of}");
    }
    let marked = format!("\u{feff}{}", json!({ "prompt": "a", "max_tokens": 1 }));
    assert_eq!(server.ask("POST", TEXT, JSON, &marked).0, 200);
    let penalty = |name: &str| {
        let body = json!({ "prompt": "Once upon a time", "max_tokens": 80, name: 1.5 });
        asked(&server, TEXT, &body).1["choices"][0]["text"].clone()
    };
    assert_eq!(penalty("repeat_penalty"), penalty("repetition_penalty"));
    assert_ne!(penalty("repeat_penalty"), penalty("no_such_penalty"));
}

#[test]
fn formats_go_by_the_names_of_other_servers() {
    let server = Server::new(&[]);
    let text = |more: Value| {
        let body = with(json!({ "prompt": "Which?", "max_tokens": 40, "temperature": 1, "seed": 2 }), &more);
        let (status, answer, warnings) = asked(&server, TEXT, &body);
        assert_eq!((status, warnings.len()), (200, 0), "{answer}");
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let choices = ["a.c (1+1)", "x|y"];
    for more in [json!({ "guided_choice": choices }), json!({ "structured_outputs": { "choice": choices } })] {
        assert!(choices.contains(&&*text(more)));
    }
    for more in [json!({ "guided_regex": "[0-9]{3}" }), json!({ "regex": "[0-9]{3}" })] {
        let text = text(more);
        assert!(text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    }
    let schema = json!({ "enum": ["cat", "dog"] });
    for more in [
        json!({ "guided_json": schema }),
        json!({ "guided_json": schema.to_string() }),
        json!({ "json_schema": schema }),
        json!({ "structured_outputs": { "json": schema } }),
        json!({ "response_format": { "type": "json_schema",
            "json_schema": { "name": "animal", "strict": "true", "schema": schema } } }),
    ] {
        assert!(["\"cat\"", "\"dog\""].contains(&&*text(more)));
    }
    let (status, refused, _) = asked(&server, TEXT, &json!({ "prompt": "a", "guided_grammar": "root ::= x" }));
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("guided_grammar")));
}

#[test]
fn who_leaves_while_a_prompt_is_computed_is_not_waited_for() {
    let server = Server::new(&[]);
    // A prompt of many steps, which are not done before the client disconnects.
    let mut long =
        json!({ "prompt": "Once upon a time there was a dragon. ".repeat(100), "max_tokens": 1, "stream": true });
    let mut stream = server.send("POST", TEXT, JSON, &long.to_string());
    // The head of the response comes before the prompt is computed.
    stream.read_exact(&mut [0; 16]).unwrap();
    drop(stream);
    while server.metric("anygpu_requests_in_progress") > 0.0 {
        std::thread::yield_now();
    }
    long["stream"] = json!(false);
    let (status, answer, _) = asked(&server, TEXT, &long);
    assert_eq!(status, 200, "{answer}");
    let usage = &answer["usage"];
    let (all, cached) = (usage["prompt_tokens"].as_u64(), usage["prompt_tokens_details"]["cached_tokens"].as_u64());
    assert!(all > Some(600) && cached.unwrap() + 1 < all.unwrap(), "{usage}");
}

#[test]
fn what_cannot_fit_is_refused_and_what_is_cut_off_is_told_so() {
    let server = Server::new(&[]);
    let (status, refused, _) = asked(&server, TEXT, &json!({ "prompt": "a dragon ".repeat(300_000) }));
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("context_length_exceeded")), "{refused}");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("POST {TEXT} HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n{JSON}\r\n", server.address);
    stream.write_all(format!("{head}{{\"prompt\"").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 400") && response.contains("was cut off"), "{response}");
    for path in ["/v1//models", "/models", "/v1/models/"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    // All errors are JSON.
    for (method, path, status) in [("GET", "/no/such", 404), ("POST", "/health", 405), ("GET", CHAT, 405)] {
        let (found, _, body) = server.ask(method, path, "", "");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(found == status && body["error"]["message"].is_string(), "{path}: {found} {body}");
    }
}

#[test]
fn names_that_others_can_make_lead_here_are_refused() {
    let ask = |server: &Server, host: &str, headers: &str| server.ask_as(host, "GET", "/v1/models", headers, "").0;
    let server = Server::new(&["--allowed-host", "box.example"]);
    for host in [&*server.address, "localhost:80", "[::1]:9", "BOX.example"] {
        assert_eq!(ask(&server, host, ""), 200, "{host}");
    }
    // A page whose own name resolves to this server (DNS rebinding).
    assert_eq!(ask(&server, "evil.example", "Origin: http://evil.example\r\n"), 403);
    let (status, _, body) = server.ask_as("evil.example:8080", "POST", TEXT, JSON, "{\"prompt\": \"a\"}");
    assert!(status == 403 && body.contains("host_not_allowed"), "{body}");
    // An attacker's page does not have the key.
    let keyed = Server::new(&["--api-key", "secret"]);
    assert_eq!(ask(&keyed, "evil.example", "Authorization: Bearer secret\r\n"), 200);
    assert_eq!(ask(&keyed, "evil.example", ""), 401);
}

#[test]
fn a_file_without_a_tokenizer_embeds_tokens_and_says_what_it_lacks() {
    let mut bytes = std::fs::read(fixture("bert-mean")).unwrap();
    let (key, other) = (b"tokenizer.ggml.model", b"tokenizer.ggml.xxxxx");
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at..at + key.len()].copy_from_slice(other);
    let path = std::env::temp_dir().join(format!("anygpu-no-tokenizer-{}.gguf", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let server = Server::new(&["--model", path.to_str().unwrap()]);
    let (status, refused, _) = asked(&server, EMBEDDINGS, &json!({ "input": "the cat sat" }));
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("no tokenizer"), "{refused}");
    assert_eq!(asked(&server, EMBEDDINGS, &json!({ "input": [1, 2.0, 3] })).0, 200);
    drop(server);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_server_has_the_models_own_context_unless_it_is_told_another() {
    let context = |args: &[&str]| {
        let (_, models) = Server::new(args).get("/v1/models");
        serde_json::from_str::<Value>(&models).unwrap()["data"][0]["context_length"].as_u64().unwrap()
    };
    let trained = |name: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anygpu"));
        let output = command.args(["inspect", &fixture(name), "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["n_ctx_train"].as_u64().unwrap()
    };
    let (name, model) = ("llama-gqa-tied", fixture("llama-gqa-tied"));
    assert_eq!(context(&["--model", &model]), trained(name));
    assert_eq!(context(&["--model", &model, "--n-ctx", "16"]), 16);
}
