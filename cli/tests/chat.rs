//! Tests of conversations, through a pipe and in a terminal. The model is the built-in one with a chat template that it
//! was not trained on, so its answers are nonsense, but always the same.

mod common;

use common::with_template;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Template that writes each role in brackets, followed by the content.
const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}\
                     {% if add_generation_prompt %}[assistant]{% endif %}";

fn chat(model: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
    command.args(["chat", "--max-tokens", "12", "--model"]).arg(model).args(more).env("ANYGPU_BACKEND", "cpu");
    command
}

/// Runs a conversation with its lines on the standard input.
fn piped(model: &Path, more: &[&str], lines: &[u8]) -> Output {
    let mut command = chat(model, more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(lines);
    child.wait_with_output().unwrap()
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap())
}

#[test]
fn each_line_of_a_pipe_is_a_turn_and_goes_on_with_what_was_computed() {
    let model = with_template("chat-pipe", PLAIN);
    let saved = std::env::temp_dir().join(format!("anygpu-chat-{}.json", std::process::id()));
    let lines = format!("Tell me a story.\n\na\\\nb\n/stats\n/save {}\n", saved.display());
    let output = piped(&model, &["--system", "Be short."], lines.as_bytes());
    let [said, notes] = texts(&output);
    assert!(output.status.success(), "{notes}");
    let found: Value = serde_json::from_slice(&std::fs::read(&saved).unwrap()).unwrap();
    let messages = found["messages"].as_array().unwrap();
    let texts_of = |role: &str| -> Vec<&str> {
        messages.iter().filter(|m| m["role"] == role).map(|m| m["content"].as_str().unwrap()).collect()
    };
    assert_eq!(texts_of("system"), ["Be short."]);
    assert_eq!(texts_of("user"), ["Tell me a story.", "a\nb"]);
    let answers = texts_of("assistant");
    assert_eq!(said, format!("{}\n{}\n", answers[0], answers[1]), "the standard output has the answers alone");
    // The prompt and the answer of the first turn are not computed again, except for the answer's last token.
    let stats = notes.lines().find(|line| line.starts_with("last answer")).unwrap();
    let numbers: Vec<usize> = stats.split(' ').filter_map(|word| word.parse().ok()).collect();
    let (computed, known) = (numbers[numbers.len() - 2], numbers[numbers.len() - 1]);
    assert!(known > 12 && computed < known, "{stats}");

    // A loaded conversation continues as the saved one would have.
    let go_on = format!("/load {}\nAnd then?\n", saved.display());
    let lines = format!("{lines}And then?\n");
    let [whole, _] = texts(&piped(&model, &["--system", "Be short."], lines.as_bytes()));
    let [rest, _] = texts(&piped(&model, &[], go_on.as_bytes()));
    assert_eq!(whole, format!("{said}{rest}"));
    // After a reset the conversation begins anew.
    let [again, _] = texts(&piped(&model, &["--system", "Be short."], b"Hm?\n/reset\nTell me a story.\n/exit\nNo.\n"));
    assert_eq!(again.lines().nth(1), Some(answers[0].lines().next().unwrap()));
    std::fs::remove_file(&saved).unwrap();
    std::fs::remove_file(&model).unwrap();
}

#[test]
fn a_full_context_leaves_out_what_is_oldest() {
    let model = with_template("chat-full", PLAIN);
    let line = "Once there was a little dragon that lived on a mountain and had a friend.\n";
    let lines = line.repeat(5) + "/stats\n";
    let output = piped(&model, &["--n-ctx", "96"], lines.as_bytes());
    let [said, notes] = texts(&output);
    assert!(output.status.success() && said.lines().count() >= 5, "{said}\n{notes}");
    assert!(notes.contains("the context of 96 is full: the oldest 2 messages are left out"), "{notes}");
    assert!(notes.contains("10 messages, the oldest"), "{notes}");
    let output = piped(&model, &["--n-ctx", "96", "--overflow", "error"], lines.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output)[1].contains("error: "), "{:?}", texts(&output));
    std::fs::remove_file(&model).unwrap();
}

/// With threads, Mesa's software GPU may damage the heap.
#[cfg(target_os = "linux")]
#[test]
fn a_software_gpu_has_no_threads_of_its_own() {
    use std::io::{BufRead, BufReader};

    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgl")) {
        return println!("SKIPPED: ANYGPU_SKIP names webgl");
    }
    let model = with_template("chat-threads", PLAIN);
    let mut command = chat(&model, &["--n-ctx", "256"]);
    command.env("ANYGPU_BACKEND", "webgl").env_remove("LP_NUM_THREADS").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = child.stdin.take().unwrap();
    lines.write_all(b"Hi!\n").unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    // A thread may end meanwhile.
    let names: Vec<String> =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok()).collect();
    drop(lines);
    assert!(child.wait().unwrap().success() && !said.is_empty(), "{said}");
    assert!(!names.is_empty() && !names.iter().any(|name| name.starts_with("llvmpipe")), "{names:?}");
    std::fs::remove_file(&model).unwrap();
}

#[test]
fn thoughts_are_no_part_of_an_answer() {
    let template = format!("{PLAIN}<think>\n");
    let model = with_template("chat-thoughts", &template);
    let output = piped(&model, &[], b"Why?\n");
    let [said, notes] = texts(&output);
    // All of the answer is reasoning, because the model never ends that.
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert!(notes.contains("the message is taken back") && notes.len() > 60, "{notes}");
    std::fs::remove_file(&model).unwrap();
}

#[test]
fn one_message_is_answered_and_what_is_piped_belongs_to_it() {
    let model = with_template("chat-run", PLAIN);
    let run = |words: &[&str], lines: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
        command.args(["run", "--max-tokens", "12"]).arg(&model).args(words).env("ANYGPU_BACKEND", "cpu");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(lines);
        child.wait_with_output().unwrap()
    };
    let [expected, _] = texts(&piped(&model, &[], b"\"\"\"Tell it:\n\na\nb\"\"\"\n"));
    for (words, lines) in
        [(&["Tell", "it:"][..], &b"a\nb\n"[..]), (&["Tell it:\n\na\nb"], b""), (&[], b"\xef\xbb\xbfTell it:\n\na\nb\n")]
    {
        let output = run(words, lines);
        assert_eq!((texts(&output)[0].as_str(), output.status.code()), (&*expected, Some(0)), "{words:?}");
    }
    let output = run(&[], b"");
    assert!(output.status.code() == Some(1) && texts(&output)[1].contains("nothing is asked"), "{:?}", texts(&output));
    std::fs::remove_file(&model).unwrap();
}

#[test]
fn an_answer_is_made_again_with_other_settings() {
    let model = with_template("chat-again", PLAIN);
    let lines = b"Hm?\n/regen\n/set temperature 2\n/set\n/regen\n/regen\n/set max_tokens 2\n/regen\n/stats\n";
    let output = piped(&model, &[], lines);
    let [said, notes] = texts(&output);
    assert!(output.status.success(), "{notes}");
    assert!(notes.contains("temperature  2 (") && notes.contains("/set temperature 0.8"), "{notes}");
    assert!(notes.contains("conversation  2 messages") && notes.contains("2 tokens at"), "{notes}");
    // An answer may have several lines.
    let greedy = texts(&piped(&model, &[], b"Hm?\n"))[0].clone();
    let rest = said.strip_prefix(&format!("{greedy}{greedy}")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(!rest.contains(&greedy), "{said:?}");
    for (lines, part) in [(&b"/regen\n"[..], "nothing was answered yet"), (b"/set heat 1\n", "no setting \"heat\"")] {
        let output = piped(&model, &[], lines);
        assert!(output.status.code() == Some(1) && texts(&output)[1].contains(part), "{:?}", texts(&output));
    }
    std::fs::remove_file(&model).unwrap();
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let refused = |output: &Output, part: &str| {
        let [said, notes] = texts(output);
        assert_eq!(output.status.code(), Some(1), "{notes}");
        assert!(said.is_empty() && notes.lines().count() == 1 && notes.contains(part), "{notes:?} lacks {part:?}");
    };
    refused(&piped(Path::new("gab"), &[], b""), "cannot chat; name a model that can");
    let model = with_template("chat-refused", PLAIN);
    refused(&piped(&model, &[], b"/rest\n"), "there is no /rest");
    refused(&piped(&model, &[], b"a\xff\n"), "not UTF-8: byte 1");
    refused(&piped(&model, &[], b"/load /no/such/file\n"), "cannot open");
    refused(&piped(&model, &["--temperature", "-1"], b"Hi\n"), "temperature");
    std::fs::remove_file(&model).unwrap();
}

#[cfg(target_os = "linux")]
mod terminal {
    use super::*;
    use nix::pty::{Winsize, openpty};
    use std::fs::File;
    use std::io::Read;
    use std::process::Child;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    /// A conversation in a pseudo-terminal, whose other end this is.
    struct Terminal {
        child: Child,
        typed: File,
        shown: Receiver<Vec<u8>>,
        so_far: String,
    }

    impl Terminal {
        fn new(mut chat: Command, folder: &Path) -> Terminal {
            let pty = openpty(None, None).unwrap();
            let end = || Stdio::from(pty.slave.try_clone().unwrap());
            let mut command = Command::new("setsid");
            command.arg("--ctty").arg(chat.get_program()).args(chat.get_args()).env_remove("NO_COLOR");
            command.envs(chat.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("ANYGPU_BACKEND", "cpu").env("XDG_CACHE_HOME", folder).env("TERM", "xterm");
            chat = command;
            let child = chat.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
            let typed = File::from(pty.master);
            let (send, shown) = channel();
            let mut screen = typed.try_clone().unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(n) = screen.read(&mut bytes) {
                    if n == 0 || send.send(bytes[..n].to_vec()).is_err() {
                        return;
                    }
                }
            });
            Terminal { child, typed, shown, so_far: String::new() }
        }

        /// Returns all output until the program ends, and its exit code.
        fn rest(mut self) -> (String, Option<i32>) {
            while let Ok(bytes) = self.shown.recv_timeout(Duration::from_secs(120)) {
                self.so_far += &String::from_utf8_lossy(&bytes);
            }
            (self.so_far, self.child.wait().unwrap().code())
        }

        fn types(&mut self, keys: &str) {
            self.typed.write_all(keys.as_bytes()).unwrap();
        }

        /// Waits for a text, and drops all output up to its end.
        fn shows(&mut self, text: &str) {
            while !self.so_far.contains(text) {
                let bytes = self.shown.recv_timeout(Duration::from_secs(120));
                let bytes = bytes.unwrap_or_else(|_| panic!("{text:?} does not come after {:?}", self.so_far));
                self.so_far += &String::from_utf8_lossy(&bytes);
            }
            let end = self.so_far.find(text).unwrap() + text.len();
            self.so_far.drain(..end);
        }
    }

    #[test]
    fn ctrl_c_ends_an_answer_and_ctrl_d_the_conversation() {
        let model = with_template("chat-terminal", PLAIN);
        let folder = std::env::temp_dir().join(format!("anygpu-terminal-{}", std::process::id()));
        let endless = ["--max-tokens", "1000000", "--temperature", "1"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
        command.args(["chat", "--model"]).arg(&model).args(endless);
        let mut terminal = Terminal::new(command, &folder);
        terminal.shows("the context holds 2048 tokens");
        terminal.shows("Ctrl-D leaves");
        terminal.shows("> ");
        terminal.types("\x03");
        terminal.shows("/exit leaves");
        terminal.shows("> ");
        terminal.types("Tell me\\\rmore.\r");
        // The program switches bracketed paste off when the line is complete and the answer begins.
        terminal.shows("\x1b[?2004l");
        terminal.shows(" ");
        terminal.types("\x03");
        terminal.shows("(stopped)");
        terminal.shows("> ");
        terminal.types("/nothing\r");
        terminal.shows("there is no /nothing");
        terminal.shows("> ");
        terminal.types("/sta\t\r");
        terminal.shows("2 messages");
        terminal.shows("> ");
        terminal.types("\x04");
        assert!(terminal.child.wait().unwrap().success());
        let history = std::fs::read_to_string(folder.join("anygpu/chat-history")).unwrap();
        assert!(history.contains("/nothing") && history.contains("more."), "{history}");
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_file(&model).unwrap();
    }

    #[test]
    fn lines_end_between_words_in_a_terminal_and_nowhere_else() {
        let generate = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
            command.args(["generate", "--backend", "cpu", "--max-tokens", "60", "--prompt", "Once upon a time"]);
            command.stdin(Stdio::null()).stderr(Stdio::null());
            command
        };
        let whole = String::from_utf8(generate().output().unwrap().stdout).unwrap();
        let paragraphs = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(whole.lines().any(|line| line.len() > 120), "{whole}");
        for columns in [20, 40, 80, 120] {
            let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            let pty = openpty(Some(&size), None).unwrap();
            let mut child = generate().stdout(Stdio::from(pty.slave)).spawn().unwrap();
            let mut shown = Vec::new();
            // Reading ends with an error, once the program has closed its end.
            let _ = File::from(pty.master).read_to_end(&mut shown);
            assert!(child.wait().unwrap().success());
            let shown = String::from_utf8(shown).unwrap();
            let longest = shown.lines().map(str::len).max().unwrap();
            assert!(longest <= columns.into() && longest + 12 > columns.into(), "{columns}: {shown}");
            assert_eq!(paragraphs(&shown), paragraphs(&whole), "{columns}");
        }
    }

    #[test]
    fn a_terminal_has_colours_unless_somebody_wants_none() {
        let folder = std::env::temp_dir();
        for (args, code, says) in [(["inspect", "/no/such.gguf"], 1, "error:"), (["help", "generate"], 0, "Usage:")] {
            let shown = |none: Option<&str>| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_anygpu"));
                command.args(args).envs(none.map(|value| ("NO_COLOR", value)));
                let (shown, ended) = Terminal::new(command, &folder).rest();
                assert!(ended == Some(code) && shown.contains(says), "{args:?}: {shown}");
                shown
            };
            assert!(shown(None).contains("\x1b["), "{args:?} has no colours");
            assert!(!shown(Some("1")).contains('\x1b'), "{args:?} has colours");
            // An empty `NO_COLOR` has no effect, by its specification.
            assert!(shown(Some("")).contains("\x1b["), "{args:?} has no colours");
        }
    }
}
