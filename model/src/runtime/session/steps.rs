//! Record of the steps that computed a text. Rows of a step are rounded together, so recomputing a text with the same
//! steps gives the same bits.

/// Consecutive steps of the same size.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Rows of the program.
    program: usize,
    /// Tokens of each step, at most the rows of the program.
    rows: usize,
    /// Number of steps.
    count: usize,
}

/// Steps of a text, from its beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    runs: Vec<Run>,
    /// Position after the last step.
    end: usize,
}

impl Steps {
    /// Records a step at a position, and drops earlier ones from there on.
    pub fn push(&mut self, position: usize, program: usize, rows: usize) {
        let mut cut = program;
        while self.end > position {
            let Some(run) = self.runs.last_mut() else { break };
            self.end -= run.rows;
            run.count -= 1;
            cut = run.program;
            if run.count == 0 {
                self.runs.pop();
            }
        }
        // A step that is cut keeps the rows that the text kept.
        self.add(cut, position - self.end);
        self.add(program, rows);
    }

    fn add(&mut self, program: usize, rows: usize) {
        match self.runs.last_mut() {
            _ if rows == 0 => {}
            Some(run) if (run.program, run.rows) == (program, rows) => run.count += 1,
            _ => self.runs.push(Run { program, rows, count: 1 }),
        }
        self.end += rows;
    }

    /// Iterates over the program rows and tokens of each step, for the first `tokens` tokens. The last step may have
    /// been longer.
    pub fn of(&self, tokens: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = self.runs.iter().flat_map(|run| std::iter::repeat_n((run.program, run.rows), run.count));
        all.scan(tokens, |left, (program, rows)| {
            let now = rows.min(*left);
            *left -= now;
            (now > 0).then_some((program, now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(list: &[(usize, usize, usize)]) -> Steps {
        let mut steps = Steps::default();
        list.iter().for_each(|(position, program, rows)| steps.push(*position, *program, *rows));
        steps
    }

    #[test]
    fn steps_are_those_that_were_taken() {
        let steps = steps(&[(0, 8, 7), (7, 1, 1), (8, 1, 1), (9, 1, 1)]);
        assert_eq!(steps.runs.len(), 2);
        assert_eq!(steps.of(9).collect::<Vec<_>>(), [(8, 7), (1, 1), (1, 1)]);
        assert_eq!(steps.of(3).collect::<Vec<_>>(), [(8, 3)]);
        assert_eq!(steps.of(99).count(), 4);
    }

    #[test]
    fn a_text_that_goes_back_forgets_them() {
        let whole = steps(&[(0, 8, 7), (7, 1, 1), (8, 1, 1), (8, 4, 4), (12, 1, 1)]);
        assert_eq!(whole.of(99).collect::<Vec<_>>(), [(8, 7), (1, 1), (4, 4), (1, 1)]);
        let within = steps(&[(0, 8, 8), (3, 1, 1)]);
        assert_eq!(within.of(99).collect::<Vec<_>>(), [(8, 3), (1, 1)]);
        assert_eq!(steps(&[(0, 8, 8), (0, 2, 2)]).of(99).collect::<Vec<_>>(), [(2, 2)]);
    }
}
