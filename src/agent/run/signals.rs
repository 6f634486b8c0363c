//! SIGTERM and SIGINT end a run, SIGHUP reads its config again.

use anyhow::Context as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

/// What was asked of the process.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Nothing asked, and no signal listened to.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Listens to the process's signals from here on, on a thread of its own. A second SIGINT or SIGTERM ends the process
    /// at once, for whoever has lost patience.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> anyhow::Result<Self> {
        let signals = Self::default();
        let shared = signals.clone();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("listen to signals")?;
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(shared.take_all(&ready)))
            .context("listen to signals")?;
        is_ready.recv().context("listen to signals")?.context("listen to signals")?;
        Ok(signals)
    }

    async fn take_all(self, ready: &std::sync::mpsc::SyncSender<std::io::Result<()>>) {
        let streams = (|| {
            let of = |kind| signal(kind);
            Ok((of(SignalKind::terminate())?, of(SignalKind::interrupt())?, of(SignalKind::hangup())?))
        })();
        let (mut terminate, mut interrupt, mut hangup) = match streams {
            Ok(streams) => {
                let _ = ready.send(Ok(()));
                streams
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        loop {
            let is_hangup = std::future::poll_fn(|context| {
                if hangup.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(true);
                }
                let is_over = terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
                if is_over { std::task::Poll::Ready(false) } else { std::task::Poll::Pending }
            })
            .await;
            if is_hangup {
                self.reload.store(true, Ordering::Relaxed);
            } else if self.stop.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        }
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run has to end.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks for the config to be read again.
    pub fn reload(&self) {
        self.reload.store(true, Ordering::Relaxed);
    }

    /// Whether the config has to be read again; asking forgets it.
    #[must_use]
    pub fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}
