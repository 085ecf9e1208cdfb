//! Search for dead ends of a grammar: places that an answer can reach, but from which it cannot be finished.

use llguidance::api::ParserLimits;
use llguidance::earley::{CGrammar, CSymIdx};

/// Returns whether a grammar has a dead end, such as a comma after which no further key is allowed.
///
/// *Errors*: lexemes whose analysis exceeds the limits.
pub(crate) fn has_some(grammar: &CGrammar, limits: &ParserLimits) -> Result<bool, String> {
    let symbols = reachable(grammar);
    let lexer = grammar.lexer_spec();
    let mut lexemes = lexer.to_regex_vec(&mut limits.clone()).map_err(|error| error.to_string())?;
    // Symbols that can be finished.
    let mut ends = vec![false; symbols.iter().map(|symbol| symbol.as_index() + 1).max().unwrap_or_default()];
    for symbol in &symbols {
        let data = grammar.sym_data(*symbol);
        ends[symbol.as_index()] = data.is_nullable || !data.cond_nullable.is_empty();
        if let Some(lexeme) = data.lexeme {
            let mut alone = lexer.alloc_lexeme_set();
            alone.add(lexeme);
            ends[symbol.as_index()] = !lexemes.initial_state(&alone).is_dead();
        }
    }
    let parts = |rule: &_| grammar.rule_rhs(*rule).0;
    grow(&mut ends, &symbols, |symbol, ends| {
        grammar.rules_of(symbol).iter().any(|rule| parts(rule).iter().all(|part| ends[part.as_index()]))
    });
    // Symbols that can have at least one lexeme.
    let mut begins: Vec<bool> = vec![false; ends.len()];
    for symbol in &symbols {
        begins[symbol.as_index()] = ends[symbol.as_index()] && grammar.sym_data(*symbol).lexeme.is_some();
    }
    grow(&mut begins, &symbols, |symbol, begins| {
        grammar.rules_of(symbol).iter().any(|rule| may_begin(parts(rule), &ends, begins))
    });
    let is_dead = |rule: &_| {
        let parts = parts(rule);
        parts.iter().any(|part| !ends[part.as_index()]) && may_begin(parts, &ends, &begins)
    };
    let start = grammar.start().as_index();
    Ok(!ends[start] || symbols.iter().any(|symbol| grammar.rules_of(*symbol).iter().any(is_dead)))
}

/// Returns whether a sequence of symbols can have a lexeme before or in the first symbol that cannot be finished.
fn may_begin(parts: &[CSymIdx], ends: &[bool], begins: &[bool]) -> bool {
    let last = parts.iter().position(|part| !ends[part.as_index()]).map_or(parts.len(), |at| at + 1);
    parts[..last].iter().any(|part| begins[part.as_index()])
}

/// Marks symbols for which a condition holds, until nothing changes.
fn grow(of: &mut [bool], symbols: &[CSymIdx], is_true: impl Fn(CSymIdx, &[bool]) -> bool) {
    loop {
        let mut more = false;
        // Symbols come after those that contain them, so the reverse order takes fewer rounds.
        for symbol in symbols.iter().rev() {
            if !of[symbol.as_index()] && is_true(*symbol, of) {
                of[symbol.as_index()] = true;
                more = true;
            }
        }
        if !more {
            return;
        }
    }
}

/// Returns all symbols that can be reached from the start of a grammar.
fn reachable(grammar: &CGrammar) -> Vec<CSymIdx> {
    let (mut found, mut at) = (vec![grammar.start()], 0);
    let mut seen = std::collections::HashSet::from([grammar.start().as_index()]);
    while let Some(symbol) = found.get(at).copied() {
        at += 1;
        for rule in grammar.rules_of(symbol) {
            for part in grammar.rule_rhs(*rule).0 {
                if seen.insert(part.as_index()) {
                    found.push(*part);
                }
            }
        }
    }
    found
}
