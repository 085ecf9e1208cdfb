//! Commands of a conversation: a line is either a message or a command to the program.

/// The commands, and what each one does.
pub const HELP: [(&str, &str); 10] = [
    ("/system TEXT", "tell the model who it is to be; without a text, take that back"),
    ("/reset", "begin a new conversation, with the same system prompt"),
    ("/regen", "answer the last message again"),
    ("/set NAME VALUE", "change how answers are made, such as temperature 0.8; /set alone shows what can be set"),
    ("/save FILE", "write the conversation to a file, as JSON"),
    ("/load FILE", "go on with a conversation that was saved, with this model or another"),
    ("/stats", "how full the context is, and how fast the last answer was"),
    ("/help", "show this"),
    ("/exit", "leave; so does Ctrl-D"),
    ("\\ or \"\"\"", "\\ at the end of a line, or \"\"\" around lines: a message of several lines"),
];

/// A message or command.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// An empty line.
    Nothing,
    /// A message to answer.
    Answer(String),
    /// Sets the system prompt; an empty one removes it.
    System(&'a str),
    Reset,
    /// Answers the last message again.
    Again,
    /// Changes a setting; an empty text shows all of them.
    Set(&'a str),
    Save(&'a str),
    Load(&'a str),
    Stats,
    Help,
    Exit,
}

/// Parses lines that are [complete](is_whole).
///
/// *Errors*: an unknown command, or one whose argument is missing or superfluous.
pub fn read(lines: &str) -> Result<Ask<'_>, String> {
    if lines.trim().is_empty() {
        return Ok(Ask::Nothing);
    }
    let (word, rest) = lines.split_once(char::is_whitespace).unwrap_or((lines, ""));
    // A message may begin with a path.
    if !word.starts_with('/') || word[1..].contains('/') {
        return Ok(Ask::Answer(message(lines)));
    }
    let rest = rest.trim();
    let named = |ask: Ask<'static>| match rest {
        "" => Ok(ask),
        _ => Err(format!("{word} takes nothing behind it, but here is {rest:?}; /help lists what can be typed")),
    };
    let file = || if rest.is_empty() { Err(format!("name a file: {word} FILE")) } else { Ok(rest) };
    match word {
        "/system" => Ok(Ask::System(rest)),
        "/reset" => named(Ask::Reset),
        "/regen" | "/regenerate" | "/retry" => named(Ask::Again),
        "/set" => Ok(Ask::Set(rest)),
        "/save" => file().map(Ask::Save),
        "/load" => file().map(Ask::Load),
        "/stats" => named(Ask::Stats),
        "/help" | "/?" => named(Ask::Help),
        "/exit" | "/quit" | "/bye" => named(Ask::Exit),
        _ => Err(format!("there is no {word}; /help lists what can be typed, and a space before / makes it a message")),
    }
}

/// Returns whether lines are a complete message, to which no further line belongs.
pub fn is_whole(lines: &str) -> bool {
    match lines.trim_start().strip_prefix("\"\"\"") {
        Some(rest) => rest.trim_end().ends_with("\"\"\""),
        None => !lines.ends_with('\\'),
    }
}

/// Returns the message in some lines, without the backslashes or quotes that join them.
fn message(lines: &str) -> String {
    let quoted = lines.trim().strip_prefix("\"\"\"");
    match quoted {
        Some(rest) => rest.strip_suffix("\"\"\"").unwrap_or(rest).trim_matches('\n').into(),
        None => lines.strip_suffix('\\').unwrap_or(lines).replace("\\\n", "\n").trim().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Ask<'static>, String> {
        Ok(Ask::Answer(text.into()))
    }

    #[test]
    fn lines_are_messages_or_commands() {
        assert_eq!(read(" \t"), Ok(Ask::Nothing));
        assert_eq!(read(" What is /etc? "), answer("What is /etc?"));
        assert_eq!(read("/etc/passwd is what?"), answer("/etc/passwd is what?"));
        assert_eq!(read(" /system"), answer("/system"));
        assert_eq!(read("/system  You are a cat.\nA big one."), Ok(Ask::System("You are a cat.\nA big one.")));
        assert_eq!(read("/system"), Ok(Ask::System("")));
        assert_eq!([read("/regen"), read("/retry")], [const { Ok(Ask::Again) }; 2]);
        assert_eq!([read("/set"), read("/set seed  7 ")], [Ok(Ask::Set("")), Ok(Ask::Set("seed  7"))]);
        assert_eq!(read("/save my chat.json "), Ok(Ask::Save("my chat.json")));
        assert_eq!([read("/bye"), read("/quit"), read("/exit")], [const { Ok(Ask::Exit) }; 3]);
        assert!(read("/load").unwrap_err().contains("/load FILE"));
        assert!(read("/reset all").unwrap_err().contains("\"all\""));
        assert!(read("/rest").unwrap_err().contains("/help"));
    }

    #[test]
    fn several_lines_are_one_message() {
        for (lines, whole) in [
            ("a", true),
            ("a\\", false),
            ("a\\\nb", true),
            ("\"\"\"a", false),
            ("\"\"\"", false),
            ("\"\"\"a\"\"\"", true),
            ("\"\"\"\na\\\n", false),
            ("\"\"\"\na\n\"\"\" ", true),
        ] {
            assert_eq!(is_whole(lines), whole, "{lines:?}");
        }
        assert_eq!(read("a\\\nb"), answer("a\nb"));
        assert_eq!(read("\"\"\"\na\\\n\n b\n\"\"\""), answer("a\\\n\n b"));
        // The input ends before the message does.
        assert_eq!(read("a\\"), answer("a"));
        assert_eq!(read("\"\"\"a\nb"), answer("a\nb"));
    }
}
