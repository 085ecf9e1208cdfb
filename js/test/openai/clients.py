"""OpenAI's client for Python talks to `anygpu serve`, as in clients.js; and the snippet of docs/server.md is run. The last line is the
results as JSON."""

import json
import re
import sys
import traceback
from typing import Literal

import openai
from openai import APIStatusError, OpenAI, pydantic_function_tool
from pydantic import BaseModel

_, texts, vectors, calls, key, document = sys.argv
client = OpenAI(base_url=texts, api_key=key, max_retries=0)
embedder = OpenAI(base_url=vectors, api_key=key, max_retries=0)
# Its model knows by heart what to say: thoughts and two calls if there are tools, else an answer.
caller = OpenAI(base_url=calls, api_key=key, max_retries=0)

messages = [{"role": "user", "content": "Tell me of a dragon."}]
question = [{"role": "user", "content": "Is it warm in Paris?"}]
story = {"model": "gab", "prompt": "Once upon a time", "max_tokens": 24}


class Weather(BaseModel):
    city: str


class Time(BaseModel):
    pass


# With `strict`, as the client has it.
tools = [pydantic_function_tool(Weather, name="weather"), pydantic_function_tool(Time, name="time")]


class Choice(BaseModel):
    colour: Literal["red", "green"]
    sure: bool


def equal(actual, expected):
    assert actual == expected, f"{actual!r} instead of {expected!r}"


def refused(ask, status):
    """The error of what must fail."""
    try:
        ask()
    except APIStatusError as error:
        equal(error.status_code, status)
        return error
    raise AssertionError("it was not refused")


def models():
    equal([model.id for model in client.models.list()], ["gab"])
    equal(client.models.retrieve("gab").object, "model")


def chat():
    answer = client.chat.completions.create(model="gab", messages=messages, max_tokens=12)
    message = answer.choices[0].message
    assert message.content
    equal((message.role, answer.choices[0].finish_reason, answer.usage.completion_tokens), ("assistant", "length", 12))
    # Its own answer is a part of the conversation.
    more = [*messages, message, {"role": "user", "content": "And then?"}]
    following = client.chat.completions.create(model="gab", messages=more, max_tokens=2)
    assert following.usage.prompt_tokens_details.cached_tokens > 0


def chat_as_a_stream_with_usage():
    request = {"model": "gab", "messages": messages, "max_tokens": 12}
    whole = client.chat.completions.create(**request)
    chunks = list(client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    equal(text, whole.choices[0].message.content)
    equal((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 12))
    # The helper takes an answer that was cut off for an error.
    sentence = {"model": "gab", "messages": messages, "stop": ["."]}
    with client.chat.completions.stream(**sentence) as stream:
        told = "".join(event.delta for event in stream if event.type == "content.delta")
        equal(stream.get_final_completion().choices[0].message.content, told)
    equal(client.chat.completions.create(**sentence).choices[0].message.content, told)


def a_format_by_its_class():
    request = {"model": "gab", "messages": messages, "response_format": Choice}
    message = client.chat.completions.parse(**request).choices[0].message
    assert isinstance(message.parsed, Choice)
    # What the client has read of it comes back with it.
    client.chat.completions.create(model="gab", messages=[*messages, message, *messages], max_tokens=2)
    with client.chat.completions.stream(**request) as stream:
        equal(stream.get_final_completion().choices[0].message.parsed, message.parsed)


def completions():
    whole = client.completions.create(**story).choices[0].text
    assert whole.startswith(", there was a little dragon"), whole
    equal("".join(chunk.choices[0].text for chunk in client.completions.create(**story, stream=True)), whole)
    stopped = client.completions.create(**story, stop=["little"]).choices[0]
    equal((stopped.text, stopped.finish_reason), (", there was a ", "stop"))


def embeddings():
    request = {"model": "bert-mean", "input": ["the cat sat", "on the mat"]}
    # The client asks for base64 unless it is told otherwise, and gives numbers.
    found = embedder.embeddings.create(**request)
    floats = embedder.embeddings.create(**request, encoding_format="float")
    equal(len(found.data[0].embedding), 24)
    assert all(abs(a - b) < 1e-6 for a, b in zip(found.data[1].embedding, floats.data[1].embedding))
    assert found.usage.total_tokens > 0


def log_probabilities():
    request = {"model": "gab", "messages": messages, "max_tokens": 6, "temperature": 1, "seed": 5, "n": 3}
    choices = client.chat.completions.create(**request, logprobs=True, top_logprobs=2).choices
    equal(len({choice.message.content for choice in choices}), 3)
    for choice in choices:
        equal(len(choice.logprobs.content), 6)
        assert all(token.logprob <= 0 and token.bytes and len(token.top_logprobs) == 2 for token in choice.logprobs.content)


def tools_that_are_strict():
    request = {"model": "by-heart", "messages": question, "tools": tools}

    def called(message):
        return [(call.function.name, call.function.parsed_arguments) for call in message.tool_calls]

    expected = [("weather", Weather(city="Paris")), ("time", Time())]
    choice = caller.chat.completions.parse(**request).choices[0]
    equal((choice.finish_reason, choice.message.content, called(choice.message)), ("tool_calls", None, expected))
    equal(choice.message.reasoning_content, "Let me look.")
    required = caller.chat.completions.parse(**request, tool_choice="required").choices[0].message
    equal(called(required), expected[:1])
    several = {"tool_choice": "required", "parallel_tool_calls": True}
    equal(called(caller.chat.completions.parse(**request, **several).choices[0].message), expected)
    with caller.chat.completions.stream(**request) as stream:
        equal(called(stream.get_final_completion().choices[0].message), expected)
    # The model would not say this by itself.
    named = {"type": "function", "function": {"name": "time"}}
    equal(called(caller.chat.completions.parse(**request, tool_choice=named).choices[0].message), [("time", Time())])
    answered = [{"role": "tool", "tool_call_id": call.id, "content": "25 degrees"} for call in choice.message.tool_calls]
    end = caller.chat.completions.create(**{**request, "messages": [*question, choice.message, *answered]})
    equal((end.choices[0].message.content, end.choices[0].finish_reason), ("It is warm.", "stop"))


def errors():
    wrong = OpenAI(base_url=texts, api_key="wrong", max_retries=0)
    equal(refused(wrong.models.list, 401).code, "invalid_api_key")
    unsupported = refused(lambda: client.chat.completions.create(model="gab", messages=messages, reasoning_effort="low"), 400)
    equal((unsupported.param, unsupported.code, unsupported.type), ("reasoning_effort", "unsupported_parameter", "invalid_request_error"))
    absent = refused(lambda: client.chat.completions.create(model="gpt-5", messages=messages), 404)
    equal((type(absent), absent.code), (openai.NotFoundError, "model_not_found"))
    long = refused(
        lambda: client.completions.create(**{**story, "max_tokens": 10**6}, extra_body={"overflow": "error"}), 400
    )
    equal(long.code, "context_length_exceeded")


def the_snippet_of_the_document():
    with open(document, encoding="utf-8") as file:
        snippet = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    # Where it says how the reader's own server is reached.
    for theirs, ours in [('"http://127.0.0.1:8080/v1"', "texts"), ('"none"', "key"), ('"FILE"', '"gab"')]:
        equal(snippet.count(theirs), 1)
        snippet = snippet.replace(theirs, ours)
    names = {"texts": texts, "key": key}
    exec(snippet, names)
    assert names["answer"].choices[0].message.content


CHECKS = {
    "models": models,
    "chat": chat,
    "chat as a stream with usage": chat_as_a_stream_with_usage,
    "a format by its class": a_format_by_its_class,
    "completions": completions,
    "embeddings": embeddings,
    "log probabilities": log_probabilities,
    "tools that are strict": tools_that_are_strict,
    "errors": errors,
    "the snippet of docs/server.md": the_snippet_of_the_document,
}
results = []
for name, check in CHECKS.items():
    result = {"name": f"Python: {name}", "ok": True}
    try:
        check()
    except Exception:
        result = {**result, "ok": False, "message": traceback.format_exc()}
    results.append(result)
print(json.dumps(results))
