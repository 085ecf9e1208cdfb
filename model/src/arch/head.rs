//! Head: what a step computes after the blocks, as independent choices.

/// Rows of a step that have an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputRows {
    /// None: all parts of a prefill but the last only fill the KV cache.
    None,
    /// The last row of each sequence.
    Last,
    /// All rows, which verifies a draft.
    All,
}

/// How a token is chosen from the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenChoice {
    /// Whether it is sampled from the best [`TopK::MAX`](backend_api::op::TopK::MAX); otherwise it is the best one.
    pub sample: bool,
    /// Whether penalties and biases apply: the inputs [`PENALTIES`](super::PENALTIES) and [`BIAS`](super::BIAS).
    pub adjust: bool,
}

/// Outputs after the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// Rows that have the outputs below.
    pub rows: OutputRows,
    /// A token after each of these rows. For the last rows it is written into the history; for all rows it is the output
    /// [`CHOSEN`](super::CHOSEN) `[rows]`.
    pub token: Option<TokenChoice>,
    /// The probabilities of the chosen token and of the likeliest ones, before adjustments: the outputs
    /// [`PROBABILITIES`](super::PROBABILITIES) and [`BEST`](super::BEST).
    pub log_probs: bool,
    /// The output [`LOGITS`](super::LOGITS) `[rows, n_vocab]`.
    pub logits: bool,
    /// The embedding of a whole text: the output [`EMBEDDING`](super::EMBEDDING) `[1, width]`, or `[rows, width]` if
    /// nothing is pooled. The step begins at position 0 and needs no KV cache.
    pub embedding: bool,
}

impl Head {
    /// No output.
    pub const NONE: Head =
        Head { rows: OutputRows::None, token: None, log_probs: false, logits: false, embedding: false };
    /// The best token after the last row.
    pub const GREEDY: Head = Head::choosing(TokenChoice { sample: false, adjust: false });
    /// A sampled token after the last row.
    pub const SAMPLE: Head = Head::choosing(TokenChoice { sample: true, adjust: false });
    /// The logits of the last row.
    pub const LOGITS: Head = Head { rows: OutputRows::Last, logits: true, ..Head::NONE };
    /// The embedding of the text.
    pub const EMBEDDING: Head = Head { rows: OutputRows::All, embedding: true, ..Head::NONE };

    /// Makes the head that chooses a token after the last row.
    pub const fn choosing(choice: TokenChoice) -> Head {
        Head { rows: OutputRows::Last, token: Some(choice), ..Head::NONE }
    }

    /// Makes the head with the same outputs for all rows.
    pub const fn of_all_rows(self) -> Head {
        Head { rows: OutputRows::All, ..self }
    }

    /// Returns whether tokens are chosen with penalties and biases.
    pub fn is_adjusted(&self) -> bool {
        self.token.is_some_and(|choice| choice.adjust)
    }
}
