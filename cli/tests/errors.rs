//! Tests of errors: without an open output, from arguments that cannot be typed, and from malformed files.

mod common;

use common::with_template;
use std::process::{Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(args).env("ANYGPU_BACKEND", "cpu").stdin(Stdio::null());
    command
}

fn error(output: &Output) -> &str {
    let message = std::str::from_utf8(&output.stderr).unwrap();
    assert!(message.starts_with("error: ") && message.trim_end().lines().count() == 1, "{message}");
    message
}

#[test]
fn a_standard_error_that_takes_nothing_changes_no_exit_code() {
    let cases: &[(i32, &[&str])] = &[
        (0, &["generate", "--max-tokens", "2"]),
        (1, &["generate", "--model", "/no/such/file"]),
        (1, &["logits", "--tokens", "999999"]),
        (2, &["generate", "--backend", "abacus"]),
        (2, &["generate", "--no-such-flag"]),
    ];
    for (code, args) in cases {
        #[cfg(target_os = "linux")]
        {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let status = command(args).stdout(Stdio::null()).stderr(full).status().unwrap();
            assert_eq!(status.code(), Some(*code), "{args:?}");
        }
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command(args).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(*code), "{args:?}");
    }
}

#[test]
fn a_model_that_cannot_draft_is_refused_and_one_that_can_changes_no_text() {
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/by-heart.gguf");
    let output = command(&["generate", "--draft", other]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("draft with a model of the same family"), "{}", error(&output));
    // The built-in model costs as much as a draft model as it can save, so it drafts nothing.
    let text = |more: &[&str]| {
        let output = command(&["generate", "--prompt", "One day", "--max-tokens", "20"]).args(more).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text(&[]).len() > 20);
    assert_eq!(text(&["--draft", "gab"]), text(&[]));
}

#[test]
fn prompts_that_do_not_fit_are_refused_alike() {
    for tokens in [3_000, 40_000, 131_000] {
        // A byte that no token combines with others.
        let text = "\u{1}".repeat(tokens);
        for (command_name, more) in [("generate", None), ("generate", Some("--json")), ("logits", None)] {
            let args = [command_name, "--prompt", &text];
            let output = command(&args).args(more).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{command_name} of {tokens}");
            let expected = format!("error: {tokens} tokens do not fit: 0 of the context's 2048 are used; ");
            assert!(error(&output).starts_with(&expected), "{}", error(&output));
            assert!(output.stdout.is_empty());
        }
    }
}

#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_take_one_line() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bad = OsStr::from_bytes(b"a\xffb\n");
    for args in [vec!["generate", "--prompt"], vec!["generate", "--model"], vec![], vec!["--backend"]] {
        let output = command(&args).arg(bad).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error(&output).contains("\"a\\xFFb\\n\" is not UTF-8"), "{}", error(&output));
    }
    let output = command(&["probe"]).env("ANYGPU_BACKEND", bad).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    error(&output);
}

#[test]
fn a_hostile_template_stops_only_chats() {
    let nested = format!("{{{{ {}1 }}}}", "(".repeat(50_000));
    let chain = format!("{{{{ 1{} }}}}", "~1".repeat(50_000));
    let cases = [
        (&*nested, "cannot be read (line 1: it nests more than"),
        (&chain, "more memory or more steps than any template needs"),
        ("{% for i in [1] %}{{ loop.cycle() }}{% endfor %}", "loop.cycle has nothing to go through"),
        ("{{ 'a\nb' | indent(4000000000) }}", "more memory or more steps than any template needs"),
        ("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns.y.z }}", "an undefined value has no \"z\""),
    ];
    for (template, reason) in cases {
        let path = with_template("template", template);
        let model = path.to_str().unwrap();
        for args in [&["logits", "--tokens", "1"][..], &["generate", "--prompt", "Once", "--max-tokens", "2"]] {
            let output = command(args).args(["--model", model]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let chat = ["generate", "--chat", "--prompt", "Once", "--max-tokens", "2", "--model", model];
        let output = command(&chat).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(output.status.code(), Some(1), "{reason}");
        assert!(error(&output).contains(reason), "{}", error(&output));
    }
}

/// Prompts from the standard input or a file give the same text as those of the command line.
#[test]
fn prompts_come_from_files_and_pipes() {
    use std::io::Write;
    let file = std::env::temp_dir().join(format!("anygpu-prompt-{}.txt", std::process::id()));
    let path = file.to_str().unwrap();
    let run = |args: &[&str], stdin: &[u8]| {
        let mut child =
            command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The program may refuse the input before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        child.wait_with_output().unwrap()
    };
    std::fs::write(&file, "Once upon\na time\n").unwrap();
    for (name, option, more) in [
        ("generate", "--prompt", &["--max-tokens", "3"][..]),
        ("logits", "--prompt", &[]),
        ("embed", "--text", &["--pooling", "last"]),
    ] {
        let given = |args: &[&str], stdin: &[u8]| {
            let output = run(&[&[name], args, more].concat(), stdin);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        let words = given(&[option, "Once upon\na time"], b"");
        assert_eq!(given(&[option, "-"], b"Once upon\na time\r\n"), words, "{name}");
        assert_eq!(given(&["--file", path], b""), words, "{name}");
        let refused = |args: &[&str], stdin: &[u8], part: &str| {
            let output = run(&[&[name], args].concat(), stdin);
            assert_eq!(output.status.code(), Some(1), "{name}");
            assert!(output.stdout.is_empty() && error(&output).contains(part), "{}", error(&output));
        };
        refused(&[option, "-"], b"ab\xff", "the standard input is not UTF-8: byte 2");
        refused(&[option, "-"], &vec![b'a'; (16 << 20) + 1], "more than 16777216 bytes");
        refused(&["--file", "/no/such/file"], b"", "cannot open");
        let both = run(&[name, option, "a", "--file", path], b"");
        assert_eq!(both.status.code(), Some(2), "{name}");
    }
    assert_eq!(run(&["generate", "--system", "a"], b"").status.code(), Some(2), "a system prompt without --chat");

    let generated = |args: &[&str], stdin: &[u8]| {
        let output = run(&[&["generate", "-m", "gab", "--max-tokens", "3"], args].concat(), stdin);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    std::fs::write(&file, "\u{feff}upon\n").unwrap();
    let together = generated(&["--prompt", "Once\n\nupon"], b"");
    for (args, stdin) in [
        (&["Once"][..], &b"upon\n"[..]),
        (&["-p", "Once"], b"\xef\xbb\xbfupon\n"),
        (&["-p", "Once", "--file", path], b"time"),
        (&["Once", "--file", path], b""),
    ] {
        assert_eq!(generated(args, stdin), together, "{args:?}");
    }
    let alone = generated(&["--prompt", "Once"], b"");
    assert_eq!(generated(&["--prompt", "Once"], b"upon"), alone, "a whole prompt");
    for args in [["-p", "Once"], ["Once", "--greedy"]] {
        assert_eq!(generated(&args, b""), alone, "{args:?}");
    }
    assert_eq!(run(&["generate", "Once", "--prompt", "a"], b"").status.code(), Some(2));
    std::fs::remove_file(&file).unwrap();
}
