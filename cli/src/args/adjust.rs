//! Options that change the probabilities of tokens.

use clap::Args;

/// Options that change the probabilities of tokens.
#[derive(Debug, Clone, Args)]
pub struct AdjustArgs {
    /// Penalize tokens among the last 64 of prompt and text by dividing their logits by R: above 1 repeats less
    /// [default: 1]
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub repetition_penalty: Option<f32>,
    /// Subtract P from the logits of tokens that were generated before [default: 0]
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub presence_penalty: Option<f32>,
    /// Subtract F from the logit of a token for each time that it was generated before [default: 0]
    #[arg(long, value_name = "F", allow_hyphen_values = true)]
    pub frequency_penalty: Option<f32>,
    /// When sampling, drop candidates whose probability is less than M times that of the best one [default: 0]
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    pub min_p: Option<f32>,
    /// Add B, from -100 to 100, to the logit of the token ID; may be given several times
    #[arg(long, value_name = "ID=B", allow_hyphen_values = true, value_parser = bias)]
    pub logit_bias: Vec<(u32, f32)>,
}

/// Parses a token id and its bias.
fn bias(text: &str) -> Result<(u32, f32), String> {
    let why = || format!("{text:?} is not a token id, an equals sign and a number, such as 42=-100");
    let (id, bias) = text.split_once('=').ok_or_else(why)?;
    Ok((id.trim().parse().map_err(|_| why())?, bias.trim().parse().map_err(|_| why())?))
}

#[cfg(test)]
mod tests {
    use super::bias;

    #[test]
    fn a_bias_is_an_id_and_a_number() {
        assert_eq!(bias("42=-1.5"), Ok((42, -1.5)));
        for wrong in ["42", "=1", "a=1", "-1=1", "1=b", "1==2", ""] {
            assert!(bias(wrong).unwrap_err().contains("such as 42=-100"), "{wrong}");
        }
    }
}
