//! Tests of `serve` over HTTP, as clients use it.

mod common;

use common::server::{CHAT, JSON, Server, TEXT, command, fixture, tools};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Output};

/// Runs `generate` with the KV cache of servers, for comparison.
fn generated(prompt: &str, tokens: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args([
        "generate",
        "--backend",
        "cpu",
        "--kv-cache",
        "f16",
        "--prompt",
        prompt,
        "--max-tokens",
        tokens,
        "--json",
    ]);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

#[test]
fn texts_are_those_of_the_command_line_whole_and_as_a_stream() {
    let server = Server::new(&[]);
    let expected = generated("Once upon a time", "24");
    let mut request = json!({ "prompt": "Once upon a time", "max_tokens": 24, "model": "gab" });
    let (status, whole) = server.post(TEXT, &request);
    assert_eq!(status, 200, "{whole}");
    assert_eq!(whole["choices"][0]["text"], expected["text"]);
    assert_eq!(
        (&whole["choices"][0]["finish_reason"], &whole["object"]),
        (&json!("length"), &json!("text_completion"))
    );
    let usage =
        json!([whole["usage"]["prompt_tokens"], whole["usage"]["completion_tokens"], whole["usage"]["total_tokens"]]);
    assert_eq!(usage, json!([4, 24, 28]));
    request["stream"] = json!(true);
    request["stream_options"] = json!({ "include_usage": true });
    let events = server.stream(TEXT, &request);
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(text, expected["text"]);
    let usage = chunks.last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["completion_tokens"]), (&json!([]), &json!(24)));
    assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 3, "the prompt was there");
    // A conversation with the default template, because this model does not have one.
    let say =
        json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }], "max_tokens": 8 });
    let (status, chat) = server.post(CHAT, &say);
    assert_eq!((status, &chat["choices"][0]["message"]["role"]), (200, &json!("assistant")), "{chat}");
    let (_, tokens) = server.post(TEXT, &json!({ "prompt": [956, 1352, 259, 490], "max_tokens": 24 }));
    assert_eq!(tokens["choices"][0]["text"], expected["text"]);
    // One seed gives one text.
    let sampled = json!({ "prompt": "One day", "temperature": 1, "seed": 3, "max_tokens": 20 });
    let text = |request: &Value| server.post(TEXT, request).1["choices"][0]["text"].clone();
    assert_eq!(text(&sampled), text(&sampled));
    let any: Vec<Value> =
        (0..4).map(|_| text(&json!({ "prompt": "One", "temperature": 1.5, "max_tokens": 20 }))).collect();
    assert!(any.iter().any(|text| *text != any[0]), "without a seed texts differ");
    assert!(server.get("/v1/models").1.contains("\"id\":\"gab\""));
    assert_eq!(server.get("/v1/models/gab").0, 200);
    assert!(server.metric("anygpu_generated_tokens_total") >= 24.0 * 3.0);
    assert!(server.metric("anygpu_token_seconds_count") <= server.metric("anygpu_queue_seconds_count"));
    assert!(server.get("/metrics").1.contains("anygpu_requests_total{path=\"/v1/chat/completions\",status=\"200\"} 1"));
    // A model whose template shows no tools is told of them.
    let mut with_tools = say.clone();
    with_tools["tools"] = tools(&["time"]);
    let (status, told) = server.post(CHAT, &with_tools);
    let read = |answer: &Value| answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(status == 200 && read(&told) > read(&chat) + 50, "{told}");
}

#[test]
fn what_cannot_be_answered_is_refused_by_name() {
    let server = Server::new(&["--max-body", "2000", "--alias", "other", "--queue", "4", "--strict"]);
    let error = |path: &str, body: &Value| {
        let (status, value) = server.post(path, body);
        let error = &value["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{value}");
        (
            status,
            error["param"].as_str().unwrap_or_default().to_owned(),
            error["code"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let say = json!([{ "role": "user", "content": "Hi" }]);
    let cases = [
        (json!({ "messages": say, "tools": [{}] }), "tools[0].type"),
        (
            json!({ "messages": say, "tools": [{ "type": "function", "function": { "name": "a b" } }] }),
            "tools[0].function.name",
        ),
        (json!({ "messages": say, "tool_choice": "required" }), "tool_choice"),
        (json!({ "messages": say, "tool_choice": "any" }), "tool_choice"),
        (json!({ "messages": say, "chat_template_kwargs": { "enable_thinking": false } }), "chat_template_kwargs"),
        (json!({ "messages": say, "reasoning_effort": "low" }), "reasoning_effort"),
        (json!({ "messages": say, "logprobs": 3 }), "logprobs"),
        (json!({ "messages": say, "top_logprobs": 3 }), "top_logprobs"),
        (json!({ "messages": say, "logprobs": true, "top_logprobs": 21 }), "top_logprobs"),
        (json!({ "messages": say, "n": 0 }), "n"),
        (json!({ "messages": say, "n": 17 }), "n"),
        (json!({ "messages": say, "n": 5 }), "n"),
        (json!({ "messages": [{ "role": "user", "content": "Hi", "name": "me" }] }), "messages[0].name"),
        (json!({ "messages": [{ "role": "tool", "content": "Hi" }] }), "messages[0].tool_call_id"),
        (
            json!({ "messages": [{ "role": "assistant", "tool_calls": [{ "function": { "name": "f", "arguments": "[" } }] }] }),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (json!({ "messages": say, "presence_penalty": 3 }), "presence_penalty"),
        (json!({ "messages": say, "store": true }), "store"),
        (json!({ "messages": say, "grammar": "root ::= x" }), "grammar"),
        (json!({ "messages": say, "guided_choice": [] }), "guided_choice"),
        (json!({ "messages": say, "guided_regex": "a", "guided_json": {} }), "guided_regex"),
        (json!({ "messages": say, "structured_outputs": { "grammar": "x" } }), "structured_outputs.grammar"),
        (json!({ "messages": say, "max_tokens": 5.5 }), "max_tokens"),
        (json!({ "messages": say, "max_tokens": -2 }), "max_tokens"),
        (json!({ "messages": say, "logit_bias": { "x": 1 } }), "logit_bias"),
        (json!({ "messages": say, "logit_bias": { "1": 200 } }), "logit_bias.1"),
        (json!({ "messages": say, "response_format": { "type": "xml" } }), "response_format.type"),
        (json!({ "messages": say, "response_format": { "type": "json_schema" } }), "response_format.json_schema"),
        (
            json!({ "messages": say, "response_format": { "type": "json_schema", "json_schema": { "name": "a b" } } }),
            "response_format.json_schema.name",
        ),
        (
            json!({ "messages": say, "response_format": { "type": "json_schema",
                "json_schema": { "name": "a", "schema": { "not": {} } } } }),
            "response_format",
        ),
        (json!({ "messages": say, "temperature": "1" }), "temperature"),
        (json!({ "messages": say, "max_tokens": 0 }), "max_tokens"),
        (json!({ "messages": say, "stop": [""] }), "stop"),
        (json!({ "messages": say, "stream_options": { "x": 1 } }), "stream_options.x"),
        (json!({ "messages": say, "no_such": 1 }), "no_such"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
            "messages[0].content[0].type",
        ),
        (json!({ "messages": [{ "content": "Hi" }] }), "messages[0].role"),
        (json!({ "messages": [] }), "messages"),
        (json!({}), "messages"),
    ];
    for (body, param) in cases {
        let (status, named, _) = error(CHAT, &body);
        assert_eq!((status, named.as_str()), (400, param), "{body}");
    }
    assert_eq!(error(TEXT, &json!({ "prompt": ["a", "b", "c", "d", "e"] })).1, "prompt");
    assert_eq!(error(TEXT, &json!({ "prompt": [5000000] })).0, 400);
    let mut long = json!({ "prompt": "a", "max_tokens": 1000000, "overflow": "error" });
    assert_eq!(error(TEXT, &long).2, "context_length_exceeded");
    // A stream is refused before it begins.
    long["stream"] = json!(true);
    assert_eq!(error(TEXT, &long).0, 400);
    assert_eq!(error("/v1/embeddings", &json!({ "input": "a" })).0, 400);
    assert_eq!(
        error(CHAT, &json!({ "messages": say, "model": "gpt-4o" })),
        (404, "model".into(), "model_not_found".into())
    );
    assert_eq!(error("/v1/no/such", &json!({})).0, 404);
    assert_eq!(server.ask("DELETE", CHAT, "", "").0, 405);
    assert_eq!(server.ask("POST", CHAT, "", "{}").0, 415);
    assert_eq!(server.ask("POST", CHAT, JSON, "{").0, 400);
    assert_eq!(error(TEXT, &json!({ "prompt": "a".repeat(3000) })).0, 413);
    // Neutral values are accepted.
    let neutral = json!({ "messages": say, "model": "other", "n": 1, "presence_penalty": 0.0, "tools": [], "user": "me",
        "tool_choice": "none", "parallel_tool_calls": true, "chat_template_kwargs": {}, "logprobs": false, "top_logprobs": 0,
        "response_format": { "type": "text" }, "logit_bias": null, "max_completion_tokens": 2 });
    assert_eq!(server.post(CHAT, &neutral).0, 200);
    // The template has no place for tools: the model is told of them in the system message.
    let told = server.post(CHAT, &json!({ "messages": say, "tools": tools(&["time"]), "max_tokens": 2 }));
    assert!(told.0 == 200 && told.1["usage"]["prompt_tokens"].as_u64().unwrap() > 50, "{}", told.1);
}

#[test]
fn chances_of_tokens_are_changed() {
    let server = Server::new(&[]);
    let text = |more: Value| {
        let mut body = json!({ "prompt": "Once upon a time", "max_tokens": 150 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = server.post(TEXT, &body);
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let plain = text(json!({}));
    assert_eq!(text(json!({ "presence_penalty": 0, "repetition_penalty": 1, "logit_bias": {} })), plain);
    assert_ne!(text(json!({ "frequency_penalty": 2, "presence_penalty": 2 })), plain);
    assert_ne!(text(json!({ "repetition_penalty": 1.5 })), plain);
    let biased =
        |tokens: usize| text(json!({ "logit_bias": { "300": 100 }, "max_tokens": tokens, "ignore_eos": true }));
    let once = biased(1);
    assert!(!once.is_empty());
    assert_eq!(biased(3), once.repeat(3));
}

#[test]
fn answers_have_the_format_that_is_asked_for() {
    let server = Server::new(&["--parallel", "2"]);
    let schema = json!({
        "type": "object",
        "properties": { "animal": { "enum": ["cat", "dog"] }, "legs": { "type": "integer", "minimum": 2, "maximum": 8 } },
        "required": ["animal", "legs"],
        "additionalProperties": false
    });
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "animal", "strict": true, "schema": schema } });
    let mut request = json!({
        "messages": [{ "role": "user", "content": "Which animal?" }],
        "response_format": format,
        "temperature": 1.5,
        "seed": 4
    });
    let check = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(["cat", "dog"].map(Value::from).contains(&value["animal"]), "{value}");
        assert!(value["legs"].as_u64().is_some_and(|legs| (2..=8).contains(&legs)), "{value}");
        assert_eq!(value.as_object().unwrap().len(), 2);
    };
    // Two requests at a time take turns.
    let both = || server.post(CHAT, &request);
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(both);
        (both(), other.join().unwrap())
    });
    assert_eq!(one.1["choices"], other.1["choices"]);
    let choice = &one.1["choices"][0];
    assert_eq!((one.0, &choice["finish_reason"]), (200, &json!("stop")), "{}", one.1);
    let whole = choice["message"]["content"].as_str().unwrap();
    check(whole);
    request["stream"] = json!(true);
    let events = server.stream(CHAT, &request);
    let chunks = events.iter().filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let text: String =
        chunks.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect();
    assert_eq!(text, whole);
    request["stream"] = json!(false);
    request["response_format"] = json!({ "type": "json_object" });
    request["max_tokens"] = json!(300);
    let (_, any) = server.post(CHAT, &request);
    let choice = &any["choices"][0];
    let (text, finish) = (choice["message"]["content"].as_str().unwrap(), &choice["finish_reason"]);
    assert!(text.starts_with('{'), "{text}");
    assert!(finish == "length" || serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()), "{text}");
    request["response_format"] = format;
    request["response_format"]["json_schema"]["schema"] = json!({ "type": "array", "uniqueItems": true });
    let (status, refused) = server.post(CHAT, &request);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(status == 400 && message.starts_with("Invalid schema for response_format 'animal': "), "{message}");
    assert!(message.contains("unsupported schema keyword \"uniqueItems\" at #;"), "{message}");
}

#[test]
fn keys_and_origins_are_asked_for() {
    let server = Server::new(&["--api-key", "secret", "--cors", "https://example.org"]);
    for headers in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: Bearer \r\n", "Authorization: Basic secret\r\n"]
    {
        let (status, head, body) = server.ask("GET", "/v1/models", headers, "");
        assert!(status == 401 && head.contains("www-authenticate: bearer"), "{head}");
        assert!(body.contains("invalid_api_key"));
    }
    assert_eq!(server.ask("GET", "/v1/models", "authorization: bearer secret\r\n", "").0, 200);
    assert_eq!((server.get("/health").0, server.get("/metrics").0), (200, 401));
    let origin = |origin: &str| {
        let headers = format!(
            "Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
        );
        server.ask("OPTIONS", CHAT, &headers, "").1.contains("access-control-allow-origin: https://example.org")
    };
    assert!(origin("https://example.org") && !origin("https://example.com"));
}

#[test]
fn vectors_come_as_numbers_and_as_bytes() {
    let server = Server::new(&["--model", &fixture("bert-mean")]);
    let ask = |more: Value| {
        let mut body = json!({ "input": ["the cat sat", "on the mat"], "model": "bert-mean.gguf" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/embeddings", &body)
    };
    let (status, floats) = ask(json!({}));
    assert_eq!((status, floats["data"][1]["embedding"].as_array().unwrap().len()), (200, 24));
    assert_eq!((&floats["data"][1]["index"], &floats["object"]), (&json!(1), &json!("list")));
    // 24 numbers of 4 bytes each.
    assert_eq!(ask(json!({ "encoding_format": "base64" })).1["data"][0]["embedding"].as_str().unwrap().len(), 128);
    assert_eq!(ask(json!({ "dimensions": 5 })).1["data"][0]["embedding"].as_array().unwrap().len(), 5);
    let (status, refused) = server.post(CHAT, &json!({ "messages": [{ "role": "user", "content": "Hi" }] }));
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("makes embeddings"), "{refused}");
}

#[test]
fn a_cache_whose_rows_are_no_blocks_is_kept_in_f32() {
    let cache = |model: &str| Server::new(&["--model", &fixture(model)]).greeting.clone();
    assert!(cache("families/minicpm3-short").contains("KV cache in f32"));
    assert!(cache("families/jamba-4l").contains("KV cache in f16"));
}

#[test]
fn documents_are_ranked_in_the_shapes_of_several_servers() {
    let server = Server::new(&["--model", &fixture("encoders/rank-wpm-new")]);
    assert!(server.greeting.contains("/v1/rerank "), "{}", server.greeting);
    let documents = json!(["a lower mat", "the cat sat on the mat", { "text": "mat" }]);
    let ask = |path: &str, more: Value| {
        let mut body = json!({ "query": "the cat" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post(path, &body)
    };
    let (status, ranked) = ask("/v1/rerank", json!({ "documents": documents }));
    let results = ranked["results"].as_array().unwrap();
    let scores: Vec<f64> = results.iter().map(|result| result["relevance_score"].as_f64().unwrap()).collect();
    assert!(status == 200 && scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b), "{ranked}");
    assert!(ranked["usage"]["total_tokens"].as_u64().unwrap() > 9 && ranked["object"] == "list", "{ranked}");
    let (_, best) = ask("/rerank", json!({ "documents": documents, "top_n": 1, "return_documents": true }));
    assert_eq!(best["results"].as_array().unwrap().len(), 1);
    assert!(best["results"][0]["document"]["text"].is_string() && best["results"][0]["index"] == results[0]["index"]);
    let (_, bare) = ask("/reranking", json!({ "texts": documents, "return_text": true }));
    assert!(bare[0]["score"].as_f64().unwrap() == scores[0] && bare[0]["text"].is_string(), "{bare}");
    assert_eq!(ask("/v1/reranking", json!({ "documents": [] })).1["results"], json!([]));
    for wrong in [json!({}), json!({ "documents": [1] }), json!({ "documents": "a" }), json!({ "query": 1 })] {
        assert_eq!(ask("/v1/rerank", wrong).0, 400);
    }
    let (status, refused) = server.post("/v1/embeddings", &json!({ "input": "a" }));
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("ask it to rerank"), "{refused}");
    let (status, refused) = server.post(TEXT, &json!({ "prompt": "a" }));
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("ask it to rerank"), "{refused}");
    let server = Server::new(&["--model", &fixture("bert-mean")]);
    let (status, refused) = server.post("/v1/rerank", &json!({ "query": "a", "documents": ["b"] }));
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("no classifier"), "{refused}");
}

/// Returns a request for a text that would take hours.
fn endless() -> String {
    json!({ "prompt": "One", "stream": true, "max_tokens": 100_000_000, "overflow": "shift", "ignore_eos": true })
        .to_string()
}

#[test]
fn who_leaves_makes_room_and_who_is_too_many_comes_again() {
    let server = Server::new(&["--queue", "2"]);
    let mut streams: Vec<TcpStream> = (0..2).map(|_| server.send("POST", TEXT, JSON, &endless())).collect();
    // Both answers have begun.
    streams.iter_mut().for_each(|stream| stream.read_exact(&mut [0; 400]).unwrap());
    let (status, head, body) = server.ask("POST", TEXT, JSON, &json!({ "prompt": "a" }).to_string());
    assert!(status == 503 && head.contains("retry-after: ") && body.contains("overloaded"), "{head} {body}");
    assert_eq!(server.metric("anygpu_requests_in_progress"), 2.0);
    drop(streams);
    while server.metric("anygpu_requests_in_progress") > 0.0 {
        std::thread::yield_now();
    }
    assert_eq!(server.post(TEXT, &json!({ "prompt": "a", "max_tokens": 2 })).0, 200);
}

#[cfg(unix)]
#[test]
fn signals_end_it_in_order() {
    let idle = Server::new(&[]);
    assert_eq!(idle.end("-INT"), (Some(0), String::new()));
    let busy = Server::new(&[]);
    let mut stream = busy.send("POST", TEXT, JSON, &endless());
    stream.read_exact(&mut [0; 400]).unwrap();
    let short = json!({ "prompt": "One", "max_tokens": 40, "ignore_eos": true, "stream": true });
    let mut short = busy.send("POST", TEXT, JSON, &short.to_string());
    short.read_exact(&mut [0; 400]).unwrap();
    // The endless stream gets an error, and the short one ends normally.
    assert_eq!(busy.end("-TERM"), (Some(0), String::new()));
    let read = |mut stream: TcpStream| {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        rest
    };
    assert!(read(stream).contains("the server is stopping"));
    let short = read(short);
    assert!(short.contains("\"finish_reason\":\"length\"") && short.contains("[DONE]"), "{short}");
}

#[test]
fn what_keeps_it_from_starting_is_told_in_one_line() {
    let refused = |args: &[&str], why: &str| {
        let Output { status, stderr, .. } = command(args).output().unwrap();
        let error = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && error.trim_end().lines().count() == 1 && error.contains(why), "{error}");
    };
    let server = Server::new(&[]);
    let port = server.address.rsplit(':').next().unwrap();
    refused(&["--port", port], "another program listens there");
    refused(&["--port", "0", "--model", "/no/such.gguf"], "cannot open the model");
    refused(&["--host", "example"], "invalid");
    refused(&["--cors", "example.org/path"], "is not an origin");
    refused(&["--queue", "0"], "1000000");
}
