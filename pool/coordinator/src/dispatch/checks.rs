//! Checks: what goes to a stage goes to another worker as well, and what both make of it is compared.

use std::collections::{BTreeMap, HashMap};

use anygpu_pool_proto::{Drop, Hop, Open, Step, StepDone, Wire, control, limits, subject};

use super::compare::{Output, agree};
use super::dispatcher::{Dispatcher, Out, named};
use super::said::name;
use crate::{CheckId, Copy, Event, SessionId, Stop, Verdict, WorkerId};

/// Steps that a worker has of a check at once: what it is asked besides waits for no more than these.
const AT_ONCE: usize = 2;
/// Bytes that are kept of a text for a check. Beyond that it ends without a result.
const MOST: usize = 256 << 20;

/// Steps are known by the position after their last row.
type At = u32;

struct Check {
    session: SessionId,
    epoch: u64,
    /// Where what comes to the suspect goes, and who sends it; and what goes on from there to the next stage, if there is one.
    comes: String,
    before: String,
    goes: Option<String>,
    /// Inputs, in order, and their bytes.
    inputs: Vec<Step>,
    bytes: usize,
    /// Outputs of the suspect that are not compared yet; for each step the last one.
    claims: BTreeMap<At, Output>,
    claimed: At,
    compared: usize,
    /// Whether no more comes.
    ended: bool,
    /// Workers that computed it, each with another result.
    opinions: Vec<WorkerId>,
    /// Outputs of each of them where they differ. Tokens are kept where they do not, too: few may be others.
    evidence: BTreeMap<At, Vec<Output>>,
    /// Worker that computes it now.
    running: Option<Running>,
}

/// A copy of the text at a worker.
struct Running {
    copy: Copy,
    sent: usize,
    done: usize,
    results: BTreeMap<At, Output>,
}

/// Checks under way.
#[derive(Default)]
pub(super) struct Checks {
    all: BTreeMap<CheckId, Check>,
    /// Leases that are listened to, as subjects.
    ears: HashMap<String, CheckId>,
    /// By worker and session: the suspects' texts and the copies.
    texts: HashMap<(WorkerId, SessionId), CheckId>,
    pub(super) verdicts: Vec<Event>,
}

fn end(step: &Step) -> At {
    step.position + step.rows
}

impl Check {
    fn is_disputed(&self) -> bool {
        self.opinions.len() > 1
    }

    /// Whether something comes of a step that can be compared.
    fn gives(&self, step: &Step) -> bool {
        self.goes.is_some() || step.sampling.is_some()
    }
}

impl Dispatcher {
    /// A check begins, before the suspect's first step.
    pub(super) fn check(
        &mut self,
        id: CheckId,
        (session, epoch): (SessionId, u64),
        before: Option<WorkerId>,
        suspect: Stop,
        next: Option<Stop>,
        copy: Copy,
    ) {
        let at = |stop: Stop| subject::lease(&name(stop.worker), &named(stop.lease));
        let check = Check {
            session,
            epoch,
            comes: at(suspect),
            before: before.map_or_else(|| subject::COORDINATOR.into(), name),
            goes: next.map(at),
            inputs: Vec::new(),
            bytes: 0,
            claims: BTreeMap::new(),
            claimed: 0,
            compared: 0,
            ended: false,
            opinions: vec![suspect.worker],
            evidence: BTreeMap::new(),
            running: None,
        };
        self.checks.texts.insert((suspect.worker, session), id);
        for subject in [Some(check.comes.clone()), check.goes.clone()].into_iter().flatten() {
            self.listen(id, subject);
        }
        self.checks.all.insert(id, check);
        self.compute(id, copy);
    }

    fn listen(&mut self, id: CheckId, subject: String) {
        self.out.push(Out::Listen(subject::sent(&subject, "*")));
        self.checks.ears.insert(subject, id);
    }

    fn unlisten(&mut self, subject: &str) {
        if self.checks.ears.remove(subject).is_some() {
            self.out.push(Out::Unlisten(subject::sent(subject, "*")));
        }
    }

    /// A worker is to compute what is checked.
    pub(super) fn compute(&mut self, id: CheckId, copy: Copy) {
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        let (epoch, lease, hands_over) = (check.epoch, named(copy.at.lease), check.goes.is_some());
        check.running = Some(Running { copy, sent: 0, done: 0, results: BTreeMap::new() });
        self.checks.texts.insert((copy.at.worker, copy.session), id);
        if hands_over {
            self.listen(id, subject::lease(&name(copy.to.worker), &named(copy.to.lease)));
        }
        self.request(copy.at.worker, control::What::Open(Open { session: copy.session, epoch, lease }));
        self.pump(id);
    }

    /// Stops the worker that computes for a check.
    fn stop(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        let (epoch, Some(Running { copy, .. })) = (check.epoch, check.running.take()) else { return };
        self.checks.texts.remove(&(copy.at.worker, copy.session));
        self.unlisten(&subject::lease(&name(copy.to.worker), &named(copy.to.lease)));
        if self.workers.contains_key(&name(copy.at.worker)) {
            self.request(copy.at.worker, control::What::Drop(Drop { session: copy.session, epoch }));
        }
    }

    /// The suspect's text is not looked at any more.
    fn look_away(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.get(&id) else { return };
        let (comes, goes, key) = (check.comes.clone(), check.goes.clone(), (check.opinions[0], check.session));
        if self.checks.texts.get(&key) == Some(&id) {
            self.checks.texts.remove(&key);
        }
        self.unlisten(&comes);
        goes.iter().for_each(|goes| self.unlisten(goes));
    }

    /// A check is over.
    pub(super) fn uncheck(&mut self, id: CheckId) {
        self.stop(id);
        self.look_away(id);
        self.checks.all.remove(&id);
    }

    /// A session is over: its check is, when all is compared.
    pub(super) fn check_ends(&mut self, session: SessionId) {
        let of = |(_, check): &(&CheckId, &mut Check)| check.session == session && !check.is_disputed();
        if let Some((id, check)) = self.checks.all.iter_mut().find(of) {
            let id = *id;
            check.ended = true;
            self.complete(id);
        }
    }

    fn complete(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.get(&id).filter(|check| check.ended && !check.is_disputed()) else { return };
        let gives = check.inputs.iter().filter(|step| check.gives(step)).count();
        if check.compared == gives && gives > 0 {
            self.verdict(id, Verdict::With(check.opinions[0]));
        }
    }

    fn verdict(&mut self, id: CheckId, verdict: Verdict) {
        let by = self.checks.all.get(&id).and_then(|check| check.running.as_ref()).map(|it| it.copy.at.worker);
        self.stop(id);
        self.checks.verdicts.extend(by.map(|by| Event::Checked(id, by, verdict)));
    }

    /// Sends on what came, not too much at once.
    fn pump(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        let Some(running) = &mut check.running else { return };
        let Copy { at, session, to } = running.copy;
        let lease = named(at.lease);
        let goes_to = subject::sent(&subject::lease(&name(at.worker), &lease), subject::COORDINATOR);
        let hop = match &check.goes {
            Some(_) => {
                let lease = named(to.lease);
                Hop { subject: subject::lease(&name(to.worker), &lease), lease }
            }
            None => Hop { lease: String::new(), subject: subject::out(&name(at.worker), session) },
        };
        let mut steps = Vec::new();
        while running.sent < check.inputs.len().min(running.done + AT_ONCE) {
            let step = &check.inputs[running.sent];
            running.sent += 1;
            // Of a dispute only that is to be told which differs.
            let replay = check.opinions.len() > 1 && !check.evidence.contains_key(&end(step));
            let (lease, epoch) = (lease.clone(), check.epoch);
            // As in any text, the route goes with the first step that tells something.
            let first = check
                .evidence
                .keys()
                .next()
                .filter(|_| check.opinions.len() > 1)
                .map_or(running.sent == 1, |at| *at == end(step));
            let route = if first { vec![hop.clone()] } else { Vec::new() };
            steps.push(Step { session, epoch, lease, replay, route, ..step.clone() });
        }
        steps.iter().for_each(|step| self.send(goes_to.clone(), step));
    }

    /// Something came to a subject that is listened to; whether it is one.
    pub(super) fn heard(&mut self, to: &str, payload: &[u8]) -> bool {
        let Some((to, from)) = subject::parted(to) else { return false };
        let Some(&id) = self.checks.ears.get(to) else { return false };
        let (Ok(step), Some(check)) = (Step::from_wire(payload), self.checks.all.get_mut(&id)) else { return true };
        if check.comes == to {
            if check.before == from {
                self.comes(id, step);
            } else if step.session == check.session {
                // Somebody else speaks to the suspect, which cannot know that.
                self.verdict(id, Verdict::Unknown);
            }
            return true;
        }
        let at = end(&step);
        let output = Output::Rows(step.rows, step.activations);
        if check.goes.as_deref() == Some(to) {
            if step.session == check.session && !step.replay && from == name(check.opinions[0]) {
                self.claims(id, at, output);
            }
        } else if check
            .running
            .as_ref()
            .is_some_and(|it| it.copy.session == step.session && from == name(it.copy.at.worker))
        {
            self.results(id, at, output);
        }
        true
    }

    /// A token was told; whether it is of a copy.
    pub(super) fn heard_token(&mut self, worker: WorkerId, session: SessionId, at: At, token: u32) -> bool {
        let Some(&id) = self.checks.texts.get(&(worker, session)) else { return false };
        let Some(check) = self.checks.all.get(&id) else { return false };
        let of_copy =
            check.running.as_ref().is_some_and(|it| (it.copy.at.worker, it.copy.session) == (worker, session));
        if of_copy {
            self.results(id, at, Output::Token(token));
        } else if check.goes.is_none() {
            self.claims(id, at, Output::Token(token));
        }
        of_copy
    }

    /// A step of a copy is done; whether it is of one.
    pub(super) fn copy_done(&mut self, worker: WorkerId, done: &StepDone) -> bool {
        let Some(id) = self.copy_of(worker, done.session) else { return false };
        if let Some(check) = self.checks.all.get_mut(&id)
            && let Some(running) = &mut check.running
            && check.inputs.get(running.done).is_some_and(|step| step.position == done.position)
        {
            running.done += 1;
            self.pump(id);
        }
        true
    }

    /// A worker could not go on with a copy; whether it is one.
    pub(super) fn copy_failed(&mut self, worker: WorkerId, session: SessionId) -> bool {
        let Some(id) = self.copy_of(worker, session) else { return false };
        self.verdict(id, Verdict::Unknown);
        true
    }

    fn copy_of(&self, worker: WorkerId, session: SessionId) -> Option<CheckId> {
        let id = *self.checks.texts.get(&(worker, session))?;
        let running = self.checks.all.get(&id)?.running.as_ref()?;
        ((running.copy.at.worker, running.copy.session) == (worker, session)).then_some(id)
    }

    /// A step comes to the suspect.
    fn comes(&mut self, id: CheckId, step: Step) {
        let context = self.served.context.min(limits::CONTEXT);
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        if step.session != check.session || check.is_disputed() {
            return;
        }
        let at = check.inputs.last().map_or(0, end);
        let before = check.inputs[..check.inputs.partition_point(|it| it.position <= step.position)].last();
        let again = |it: &&Step| it.rows == step.rows && it.tokens == step.tokens && it.activations == step.activations;
        if before.filter(again).is_some_and(|it| it.position == step.position) {
            return;
        }
        check.bytes += step.activations.len() + 4 * step.tokens.len();
        if step.position != at || end(&step) > context || check.bytes > MOST {
            // Something was not seen, or others than were: there is no telling what the suspect took.
            return self.verdict(id, Verdict::Unknown);
        }
        check.inputs.push(Step { route: Vec::new(), ..step });
        self.pump(id);
    }

    fn claims(&mut self, id: CheckId, at: At, output: Output) {
        let context = self.served.context;
        // What is said again is not looked at again: the next stage does not, either.
        let new = |check: &&mut Check| !check.is_disputed() && check.claimed < at && at <= context;
        let Some(check) = self.checks.all.get_mut(&id).filter(new) else { return };
        check.claimed = at;
        check.claims.insert(at, output);
        self.compare(id, at);
    }

    fn results(&mut self, id: CheckId, at: At, output: Output) {
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        let disputed = check.is_disputed();
        let Some(running) = &mut check.running else { return };
        if check.inputs[..running.sent].binary_search_by_key(&at, end).is_err() {
            return;
        }
        running.results.insert(at, output);
        if !disputed {
            return self.compare(id, at);
        }
        let results = &running.results;
        if !check.evidence.keys().all(|at| results.contains_key(at)) {
            return;
        }
        let seam = self.served.seam;
        let same = |of: &usize| agree(check.evidence.iter().map(|(at, all)| (&all[*of], &results[at])), seam);
        let with = (0..check.opinions.len()).find(same).map(|of| check.opinions[of]);
        if with.is_none() {
            check.opinions.push(running.copy.at.worker);
            check.evidence.iter_mut().for_each(|(at, all)| all.extend(results.get(at).cloned()));
        }
        self.verdict(id, with.map_or(Verdict::Differs, Verdict::With));
    }

    /// Compares what the suspect and the first other worker made of a step, if both are known.
    fn compare(&mut self, id: CheckId, at: At) {
        let seam = self.served.seam;
        let Some(check) = self.checks.all.get_mut(&id) else { return };
        let Some(running) = &mut check.running else { return };
        if !check.claims.contains_key(&at) || !running.results.contains_key(&at) {
            return;
        }
        let pair = [check.claims.remove(&at), running.results.remove(&at)].into_iter().flatten().collect();
        let by = running.copy.at.worker;
        check.evidence.insert(at, pair);
        check.compared += 1;
        let agrees = agree(check.evidence.values().map(|pair| (&pair[0], &pair[1])), seam);
        if agrees {
            check.evidence.retain(|_, pair| matches!(pair[0], Output::Token(_)));
            return self.complete(id);
        }
        let last = check.evidence.keys().next_back().copied().unwrap_or(at);
        check.opinions.push(by);
        check.claims.clear();
        check.inputs.retain(|step| end(step) <= last);
        self.look_away(id);
        self.verdict(id, Verdict::Differs);
    }
}
