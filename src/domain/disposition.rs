//! What a caller should do about an error. Every error enum of a module edge answers with one.

/// The plan that goes with a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The cause may pass: try the same thing later.
    Retry,
    /// Carry on without this sensor, model or observation; record the gap.
    Degrade,
    /// This one input is unusable: set it aside, count it, go on with the next.
    SetAside,
    /// The command cannot go on; an operator must act.
    Stop,
}
