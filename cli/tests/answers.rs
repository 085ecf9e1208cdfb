//! Tests of `serve` beyond plain text: tool calls, reasoning, log probabilities, several answers.

mod common;

use common::server::{CHAT, Server, TEXT, fixture, tools};
use serde_json::{Value, json};
use std::process::{Command, Output};

/// Assembles the first choice of a streamed answer, as clients do.
fn put_together(events: &[String]) -> Value {
    let mut choice = json!({ "content": "", "reasoning": "", "calls": [], "finish": null });
    for event in &events[..events.len() - 1] {
        let chunk: Value = serde_json::from_str(event).unwrap();
        let part = &chunk["choices"][0];
        for (into, from) in [("content", "content"), ("reasoning", "reasoning_content")] {
            let text = part["delta"][from].as_str().unwrap_or_default();
            choice[into] = json!(choice[into].as_str().unwrap().to_owned() + text);
        }
        for call in part["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let calls = choice["calls"].as_array_mut().unwrap();
            if call["id"].is_string() {
                assert_eq!((&call["index"], &call["type"]), (&json!(calls.len()), &json!("function")), "{chunk}");
                calls.push(call["function"].clone());
                continue;
            }
            assert_eq!((&call["index"], &call["function"]["name"]), (&json!(calls.len() - 1), &Value::Null), "{chunk}");
            let more = call["function"]["arguments"].as_str().unwrap();
            let last = calls.last_mut().unwrap();
            last["arguments"] = json!(last["arguments"].as_str().unwrap().to_owned() + more);
        }
        if part["finish_reason"].is_string() {
            choice["finish"] = part["finish_reason"].clone();
        }
    }
    choice
}

/// The model of this test has memorized its answers: with tools, reasoning and two calls; without, a text.
#[test]
fn tools_are_called_and_answered() {
    let server = Server::new(&["--model", &fixture("by-heart")]);
    let ask = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Is it warm?" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = server.post(CHAT, &body);
        assert_eq!(status, 200, "{answer}");
        let streamed = json!({ "stream": true });
        body.as_object_mut().unwrap().extend(streamed.as_object().unwrap().clone());
        let message = &answer["choices"][0]["message"];
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let whole = json!({
            "content": message["content"].as_str().unwrap_or_default(),
            "reasoning": message["reasoning_content"].as_str().unwrap_or_default(),
            "calls": calls.iter().map(|call| call["function"].clone()).collect::<Vec<_>>(),
            "finish": answer["choices"][0]["finish_reason"],
        });
        assert_eq!(put_together(&server.stream(CHAT, &body)), whole, "as a stream");
        answer
    };
    let call = |answer: &Value, at: usize| {
        let function = &answer["choices"][0]["message"]["tool_calls"][at]["function"];
        (
            function["name"].as_str().unwrap_or_default().to_owned(),
            function["arguments"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let both = tools(&["weather", "time"]);
    let answer = ask(json!({ "tools": both }));
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(
        (&choice["message"]["content"], &choice["message"]["reasoning_content"]),
        (&Value::Null, &json!("Let me look."))
    );
    assert_eq!(call(&answer, 0), ("weather".into(), r#"{"city":"Paris"}"#.into()));
    assert_eq!(call(&answer, 1), ("time".into(), "{}".into()));
    assert_eq!(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 3);
    // Log probabilities are reported for every token, including those that are not shown.
    let told = ask(json!({ "tools": both, "logprobs": true }));
    assert_eq!(told["choices"][0]["logprobs"]["content"].as_array().unwrap().len(), 9);
    // An unknown function is not called, and a request may allow only one call.
    let one = ask(json!({ "tools": tools(&["weather"]) }));
    assert_eq!((call(&one, 0).0.as_str(), call(&one, 1).0.as_str()), ("weather", ""));
    assert!(one["choices"][0]["message"]["content"].as_str().unwrap().contains("\"time\""));
    let one = ask(json!({ "tools": both, "parallel_tool_calls": false }));
    assert_eq!((call(&one, 0).0.as_str(), &one["choices"][0]["message"]["tool_calls"][1]), ("weather", &Value::Null));
    let quick = ask(json!({ "tools": both, "chat_template_kwargs": { "enable_thinking": false } }));
    assert_eq!(
        (&quick["choices"][0]["message"]["reasoning_content"], call(&quick, 1).0.as_str()),
        (&Value::Null, "time")
    );
    // An incomplete call does not count.
    let cut = ask(json!({ "tools": both, "max_tokens": 6 }));
    assert_eq!(
        (&cut["choices"][0]["finish_reason"], &cut["choices"][0]["message"]["tool_calls"]),
        (&json!("length"), &Value::Null)
    );
    // The function's result goes into the conversation, and the model answers with it.
    let calls = choice["message"]["tool_calls"].clone();
    let id = calls[0]["id"].clone();
    let conversation = json!([
        { "role": "user", "content": "Is it warm?" },
        choice["message"],
        { "role": "tool", "tool_call_id": id, "name": "weather", "content": "25 degrees" }
    ]);
    let end = ask(json!({ "tools": both, "messages": conversation }));
    assert_eq!(
        (&end["choices"][0]["message"]["content"], &end["choices"][0]["finish_reason"]),
        (&json!("It is warm."), &json!("stop"))
    );
    let none = ask(json!({ "tools": both, "tool_choice": "none" }));
    assert_eq!(none["choices"][0]["message"]["content"], "It is warm.");
    let plain = ask(json!({}));
    assert!(
        none["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]
            && answer["usage"]["prompt_tokens"].as_u64() > plain["usage"]["prompt_tokens"].as_u64()
    );
    // A required call always comes: the model's own if it makes one, or else one that the grammar forces.
    let single = ask(json!({ "tools": both, "tool_choice": "required" }));
    assert_eq!(
        (call(&single, 0), call(&single, 1).0.as_str()),
        (call(&answer, 0), ""),
        "one, unless more are asked for"
    );
    let required = ask(json!({ "tools": both, "tool_choice": "required", "parallel_tool_calls": true }));
    assert_eq!((call(&required, 0), call(&required, 1)), (call(&answer, 0), call(&answer, 1)));
    assert_eq!(required["choices"][0]["message"]["reasoning_content"], "Let me look.");
    // Without parameters a function can be called in one way only.
    let bare = ["weather", "time"].map(|name| json!({ "type": "function", "function": { "name": name } }));
    let named = ask(json!({ "tools": bare, "tool_choice": { "type": "function", "function": { "name": "time" } } }));
    assert_eq!((call(&named, 0), call(&named, 1).0.as_str()), (("time".into(), "{}".into()), ""));
    assert_eq!(named["choices"][0]["finish_reason"], "tool_calls");
    // Client libraries set this on every function. The prompt stays the same.
    let mut strict = both;
    for tool in strict.as_array_mut().unwrap() {
        tool["function"]["strict"] = json!(true);
    }
    for (choice, like) in [("auto", &answer), ("required", &required)] {
        let answer = ask(json!({ "tools": strict, "tool_choice": choice, "parallel_tool_calls": true }));
        assert_eq!((call(&answer, 0), call(&answer, 1)), (call(like, 0), call(like, 1)));
        assert_eq!(answer["usage"]["prompt_tokens"], like["usage"]["prompt_tokens"]);
    }
}

/// If a required call is cut off, its part is returned as a call, without the rest of its markup.
#[test]
fn a_demanded_call_that_is_cut_off_is_a_call() {
    let server = Server::new(&["--model", &fixture("by-heart")]);
    let town = json!({ "type": "object", "properties": { "town": { "const": "Lima" } }, "required": ["town"], "additionalProperties": false });
    let tool = json!({ "type": "function", "function": { "name": "weather", "parameters": town } });
    // Cut off at the end of the name, and within the arguments.
    for (max_tokens, calls) in [(6, 0), (26, 1)] {
        let mut body = json!({
            "messages": [{ "role": "user", "content": "Is it warm?" }], "tools": [tool], "tool_choice": "required", "max_tokens": max_tokens,
        });
        let (status, answer) = server.post(CHAT, &body);
        assert_eq!(status, 200, "{answer}");
        let (choice, message) = (&answer["choices"][0], &answer["choices"][0]["message"]);
        assert_eq!((&choice["finish_reason"], message["content"].as_str().unwrap_or_default()), (&json!("length"), ""));
        let told = message["tool_calls"].as_array().cloned().unwrap_or_default();
        assert_eq!(told.len(), calls, "{answer}");
        for call in &told {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(r#"{"town":"Lima"}"#.starts_with(arguments) && (1..15).contains(&arguments.len()), "{arguments}");
        }
        body["stream"] = json!(true);
        let streamed = put_together(&server.stream(CHAT, &body));
        assert_eq!((&streamed["finish"], &streamed["content"]), (&json!("length"), &json!("")));
        assert_eq!(streamed["calls"], told.iter().map(|call| call["function"].clone()).collect::<Value>());
    }
}

#[test]
fn answers_in_a_format_come_behind_thoughts() {
    let server = Server::new(&["--model", &fixture("by-heart")]);
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "none", "schema": schema } });
    let ask = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Is it warm?" }], "response_format": format, "max_tokens": 64 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = server.post(CHAT, &body);
        assert_eq!(status, 200, "{answer}");
        let message = &answer["choices"][0]["message"];
        let said: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
        assert_eq!((said, &answer["choices"][0]["finish_reason"]), (json!({}), &json!("stop")));
        message["reasoning_content"].as_str().unwrap_or_default().to_owned()
    };
    // With tools this model reasons without being asked.
    let both = tools(&["weather", "time"]);
    assert_eq!(ask(json!({ "tools": both })), "Let me look.");
}

/// Required calls are refused beside `response_format`, without tools, and with an unsupported schema.
#[test]
fn calls_that_cannot_be_demanded_are_refused() {
    let server = Server::new(&["--model", &fixture("by-heart")]);
    let refused = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Hi" }], "tool_choice": "required" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, refused) = server.post(CHAT, &body);
        assert_eq!(status, 400, "{refused}");
        refused["error"]["param"].as_str().unwrap_or_default().to_owned()
    };
    let one = tools(&["time"]);
    assert_eq!(refused(json!({ "tools": one, "response_format": { "type": "json_object" } })), "response_format");
    assert_eq!(refused(json!({})), "tool_choice");
    let odd =
        json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object", "not": {} } } }]);
    assert_eq!(refused(json!({ "tools": odd })), "tools");
}

/// Runs `generate` with some options.
fn generated(more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command
        .args(["generate", "--backend", "cpu", "--model", &fixture("by-heart"), "--prompt", "Is it warm?"])
        .args(more);
    command.output().unwrap()
}

#[test]
fn the_command_line_tells_calls_too() {
    let both = tools(&["weather", "time"]).to_string();
    let message = |more: &[&str]| {
        let output = generated(&[&["--chat", "--json"], more].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["message"].clone()
    };
    let called = message(&["--tools", &both]);
    let call = |at: usize| called["tool_calls"][at]["function"].clone();
    assert_eq!(call(0), json!({ "name": "weather", "arguments": r#"{"city":"Paris"}"# }));
    assert_eq!((call(1)["name"].as_str(), &called["content"]), (Some("time"), &Value::Null));
    assert_eq!(called["reasoning_content"], "Let me look.");
    let quick = message(&["--tools", &both, "--template-arg", "enable_thinking=false"]);
    assert!(quick["tool_calls"][1].is_object() && quick["reasoning_content"].is_null(), "{quick}");
    assert_eq!(message(&[]), json!({ "role": "assistant", "content": "It is warm." }));
    let bare = r#"[{"type": "function", "function": {"name": "time"}}]"#;
    let forced = message(&["--tools", bare, "--tool-choice", "time"]);
    assert_eq!(forced["tool_calls"][0]["function"], json!({ "name": "time", "arguments": "{}" }));
    assert!(forced["tool_calls"][1].is_null() && forced["content"].is_null(), "{forced}");
    let required = message(&["--tools", &both, "--tool-choice", "required"]);
    assert_eq!(required["tool_calls"], json!([called["tool_calls"][0]]), "one call");
    let refused = |more: &[&str], code: i32, why: &str| {
        let output = generated(more);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && error.contains(why), "{error}");
    };
    refused(&["--chat", "--template-arg", "thinking=false"], 1, "takes no argument thinking");
    refused(&["--template-arg", "enable_thinking=false"], 1, "use it with --chat");
    refused(&["--chat", "--tools", "/no/such"], 2, "cannot open");
    refused(&["--tools", &both], 2, "--chat");
    refused(&["--chat", "--tools", &both, "--tool-choice", "no"], 1, "there is no such function");
    refused(&["--chat", "--tools", &both, "--tool-choice", "time", "--json-object"], 2, "cannot be used with");
}

#[test]
fn several_answers_come_at_once_and_say_how_likely_they_are() {
    let server = Server::new(&[]);
    let mut request =
        json!({ "prompt": "One day", "temperature": 1, "seed": 7, "max_tokens": 12, "n": 3, "logprobs": 2 });
    let (status, whole) = server.post(TEXT, &request);
    assert_eq!(status, 200, "{whole}");
    let choices = whole["choices"].as_array().unwrap();
    assert_eq!(choices.iter().map(|choice| choice["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(choices[0]["text"] != choices[1]["text"] && choices[1]["text"] != choices[2]["text"], "{whole}");
    let usage = &whole["usage"];
    assert_eq!(
        (usage["completion_tokens"].as_u64(), usage["total_tokens"].as_u64()),
        (Some(36), usage["prompt_tokens"].as_u64().map(|n| n + 36))
    );
    // Each choice is the text of its own seed.
    for (at, choice) in choices.iter().enumerate() {
        let one = json!({ "prompt": "One day", "temperature": 1, "seed": 7 + at, "max_tokens": 12 });
        assert_eq!(server.post(TEXT, &one).1["choices"][0]["text"], choice["text"], "{at}");
    }
    let told = &choices[0]["logprobs"];
    let sizes =
        ["tokens", "token_logprobs", "top_logprobs", "text_offset"].map(|name| told[name].as_array().unwrap().len());
    assert_eq!(sizes, [12; 4]);
    let text: String = told["tokens"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(text, choices[0]["text"].as_str().unwrap());
    for at in 0..12 {
        let token = told["tokens"][at].as_str().unwrap();
        assert_eq!(told["top_logprobs"][at][token], told["token_logprobs"][at]);
    }
    request["stream"] = json!(true);
    request["stream_options"] = json!({ "include_usage": true });
    let events = server.stream(TEXT, &request);
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    for (at, choice) in choices.iter().enumerate() {
        let own = || chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == at);
        let text: String = own().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
        assert_eq!(text, choice["text"].as_str().unwrap());
        let told: usize =
            own().filter_map(|chunk| Some(chunk["choices"][0]["logprobs"]["tokens"].as_array()?.len())).sum();
        assert_eq!((told, own().filter(|chunk| chunk["choices"][0]["finish_reason"] == "length").count()), (12, 1));
    }
    // Usage comes once, in the last chunk; before, it is null.
    let (last, before) = chunks.split_last().unwrap();
    assert!(before.iter().all(|chunk| chunk.as_object().unwrap().get("usage") == Some(&Value::Null)));
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(36)));
    // Chats report log probabilities as well.
    let say = json!([{ "role": "user", "content": "Hi" }]);
    let chat =
        server.post(CHAT, &json!({ "messages": say, "max_tokens": 4, "n": 2, "logprobs": true, "top_logprobs": 3 })).1;
    for choice in chat["choices"].as_array().unwrap() {
        let content = choice["logprobs"]["content"].as_array().unwrap();
        assert_eq!(content.len(), 4, "{chat}");
        // Without a temperature the likeliest token is chosen.
        assert!(content.iter().all(|entry| entry["top_logprobs"][0]["token"] == entry["token"]
            && entry["top_logprobs"].as_array().unwrap().len() == 3));
    }
    assert_eq!(chat["choices"][0]["message"], chat["choices"][1]["message"]);
}
