//! The subjects that messages go by.

/// Where workers say [`Hello`](crate::Hello).
pub const HELLO: &str = "pool.hello";

/// Where a worker takes [`Control`](crate::Control).
pub fn control(worker: &str) -> String {
    format!("pool.w.{worker}.ctl")
}

/// The coordinator, in the place of a sender's name.
pub const COORDINATOR: &str = "coordinator";

/// Where a worker takes the [`Step`](crate::Step)s and [`Import`](crate::Import)s of a lease, each [by](sent) who sends it.
pub fn lease(worker: &str, lease: &str) -> String {
    format!("pool.w.{worker}.s.{lease}")
}

/// The subject of what a member sends to a [`lease`]: its own name is the end of it. Who may publish under that name alone
/// cannot speak for others.
pub fn sent(lease: &str, by: &str) -> String {
    format!("{lease}.{by}")
}

/// The [`lease`] that something was [`sent`] to, and who sent it.
pub fn parted(sent: &str) -> Option<(&str, &str)> {
    sent.rsplit_once('.').filter(|(lease, _)| lease.starts_with("pool.w.") && lease.split('.').count() == 5)
}

/// Where a worker is asked, by an empty message, to say [`Hello`](crate::Hello) again: it was thought to be gone.
pub fn greet(worker: &str) -> String {
    format!("pool.w.{worker}.hello")
}

/// All that comes to a worker.
pub fn inbox(worker: &str) -> String {
    format!("pool.w.{worker}.>")
}

/// Where a worker sends the [`Token`](crate::Token)s of a session.
pub fn out(worker: &str, session: u64) -> String {
    format!("pool.out.{worker}.{session}")
}

/// Where a worker sends its [`Heartbeat`](crate::Heartbeat)s.
pub fn heartbeat(worker: &str) -> String {
    format!("pool.up.{worker}.hb")
}

/// Where a worker sends [`StepDone`](crate::StepDone).
pub fn done(worker: &str) -> String {
    format!("pool.up.{worker}.done")
}

/// Where a worker sends [`Assigned`](crate::Assigned) as an assignment goes on, and [`Failure`](crate::Failure).
pub fn progress(worker: &str) -> String {
    format!("pool.up.{worker}.at")
}

/// The worker and the last part of a subject that a worker publishes at: `pool.up.<worker>.<what>` or
/// `pool.out.<worker>.<session>`.
pub fn sender(subject: &str) -> Option<(&str, &str)> {
    let rest = subject.strip_prefix("pool.up.").or_else(|| subject.strip_prefix("pool.out."))?;
    rest.split_once('.').filter(|(worker, what)| !worker.is_empty() && !what.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_in_the_subject() {
        assert_eq!(sender(&heartbeat("ada")), Some(("ada", "hb")));
        assert_eq!(sender(&out("ada", 7)), Some(("ada", "7")));
        assert_eq!(sender(&lease("ada", "x")), None);
        assert_eq!(sender("pool.up.ada.hb.more"), None);
        assert_eq!(sender("pool.up..hb"), None);
        let to = lease("ada", "x");
        assert_eq!(parted(&sent(&to, "bob")), Some((&*to, "bob")));
        assert_eq!(parted(&to), None);
        assert_eq!(parted(&control("ada")), None);
    }
}
