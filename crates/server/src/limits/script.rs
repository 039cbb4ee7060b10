//! The script that charges a quota, atomically, inside Redis.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind};
use vitrine_model::quota::{Admission, Quota, Taken};

const SOURCE: &str = include_str!("take.lua");

/// Prefix of the names of states in Redis; a key's prefix follows.
const KEY_PREFIX: &str = "vitrine:quota:";

/// The script, by the digest under which Redis caches it.
#[derive(Debug, Clone)]
pub(super) struct Script {
    digest: String,
}

impl Script {
    /// Loads the script into Redis.
    pub(super) async fn load(link: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let mut command = Cmd::new();
        command.arg("SCRIPT").arg("LOAD").arg(SOURCE);
        let digest = command.query_async(link).await?;
        Ok(Self { digest })
    }

    /// Charges one request to the quota of the key with this prefix.
    pub(super) async fn take(
        &self,
        link: &mut MultiplexedConnection,
        prefix: &str,
        quota: Quota,
    ) -> Result<Taken, RedisError> {
        let known = call("EVALSHA", &self.digest, prefix, quota);
        let answer = match known.query_async(link).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                // Redis was restarted or its scripts were flushed; `EVAL` loads the script again.
                call("EVAL", SOURCE, prefix, quota).query_async(link).await
            }
            answer => answer,
        };
        let (granted, owed): (u8, u64) = answer?;
        let owed = Duration::from_nanos(owed);
        Ok(Taken {
            admission: match granted {
                1 => Admission::Granted,
                _ => quota.refusal(owed),
            },
            left: quota.remaining(owed),
        })
    }

    /// Runs the script for a key that can't exist: no prefix is empty.
    pub(super) async fn probe(&self, link: &mut MultiplexedConnection) -> Result<(), RedisError> {
        if let Ok(quota) = Quota::new(1_000, 1) {
            self.take(link, "", quota).await?;
        }
        Ok(())
    }
}

fn call(how: &str, script: &str, prefix: &str, quota: Quota) -> Cmd {
    let name = [KEY_PREFIX, prefix].concat();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut command = Cmd::new();
    command.arg(how).arg(script).arg(1).arg(name);
    command
        .arg(nanos(quota.cost()))
        .arg(nanos(quota.most_owed()));
    command
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    use redis::FromRedisValue;
    use tokio::runtime::Runtime;
    use vitrine_model::quota::QuotaState;

    use super::*;

    /// Connection to the Redis that `ci/with-services` starts.
    struct Connected {
        runtime: Runtime,
        link: MultiplexedConnection,
        script: Script,
    }

    impl Connected {
        fn start() -> Option<Self> {
            let Ok(url) = std::env::var("VITRINE_TEST_REDIS") else {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "no Redis");
                eprintln!("SKIPPED: the script, for want of VITRINE_TEST_REDIS");
                return None;
            };
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            let client = redis::Client::open(url).unwrap();
            let link = client.get_multiplexed_async_connection();
            let mut link = runtime.block_on(link).unwrap();
            let script = runtime.block_on(Script::load(&mut link)).unwrap();
            Some(Self {
                runtime,
                link,
                script,
            })
        }

        fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
            let mut command = Cmd::new();
            for word in words {
                command.arg(word);
            }
            let answer = command.query_async(&mut self.link);
            self.runtime.block_on(answer).unwrap()
        }

        fn take(&mut self, prefix: &str, quota: Quota) -> Taken {
            let taken = self.script.take(&mut self.link, prefix, quota);
            self.runtime.block_on(taken).unwrap()
        }

        /// Returns the time at which Redis wrote a state, in microseconds; `None` if the state has expired.
        fn written_at(&mut self, prefix: &str) -> Option<u64> {
            let state: Option<String> = self.ask(&["GET", &[KEY_PREFIX, prefix].concat()]);
            state.map(|state| state.split_once(' ').unwrap().1.parse().unwrap())
        }
    }

    #[test]
    fn script_decides_like_the_model() {
        let Some(connected) = Connected::start() else {
            return;
        };
        let connected = RefCell::new(connected);
        let quota = prop_oneof![1..20_u32, 1..100_000_u32]
            .prop_flat_map(|requests| (Just(requests), prop_oneof![Just(1), 1..86_400_u32]))
            .prop_map(|(requests, seconds)| Quota::new(requests, seconds).unwrap());
        // Each quota gets several requests in a row: it is used up, or changes before.
        let quotas = proptest::collection::vec((quota, 1..40_usize), 1..20);
        let (granted, refused) = (Cell::new(0), Cell::new(0));
        let mut runner = TestRunner::new(ProptestConfig::with_cases(32));
        let outcome = runner.run(&quotas, |quotas| {
            let mut connected = connected.borrow_mut();
            let prefix = format!("test-{:x}", getrandom::u64().unwrap());
            let model = QuotaState::default();
            for (quota, times) in quotas {
                for _ in 0..times {
                    let taken = connected.take(&prefix, quota);
                    // A small debt expires soon, sometimes before its time can be read.
                    let Some(at) = connected.written_at(&prefix) else {
                        return Ok(());
                    };
                    let now = Duration::from_micros(at);
                    prop_assert_eq!(taken, model.take(quota, now));
                    let count = match taken.admission {
                        Admission::Granted => &granted,
                        Admission::Refused { .. } => &refused,
                    };
                    count.set(count.get() + 1);
                }
            }
            Ok(())
        });
        outcome.unwrap();
        assert!(
            granted.get() > 100 && refused.get() > 100,
            "{granted:?} {refused:?}"
        );
    }

    #[test]
    fn state_expires_by_itself_and_survives_redis_failures() {
        let Some(mut connected) = Connected::start() else {
            return;
        };
        let prefix = format!("test-{:x}", getrandom::u64().unwrap());
        let name = [KEY_PREFIX, &prefix].concat();
        let quota: Quota = "2/3600".parse().unwrap();
        // Used up an hour ahead, as after the clock was set back.
        let hour = 3_600_000_000_u64;
        let (seconds, _): (u64, u64) = connected.ask(&["TIME"]);
        let later = seconds * 1_000_000 + hour;
        let () = connected.ask(&["SET", &name, &format!("{} {later}", hour * 1_000)]);
        assert_ne!(connected.take(&prefix, quota).admission, Admission::Granted);
        assert!(
            connected.written_at(&prefix).unwrap() < later,
            "it counts from now"
        );
        let left: u64 = connected.ask(&["PTTL", &name]);
        assert!((3_500_000..=3_600_001).contains(&left), "{left}");
        // A foreign value counts as an unused quota.
        let () = connected.ask(&["SET", &name, "nonsense"]);
        let taken = connected.take(&prefix, quota);
        assert_eq!(
            (taken.admission, taken.left.requests),
            (Admission::Granted, 1)
        );
        // Redis drops scripts on request and when it restarts.
        let () = connected.ask(&["SCRIPT", "FLUSH"]);
        let taken = connected.take(&prefix, quota);
        assert_eq!(
            (taken.admission, taken.left.requests),
            (Admission::Granted, 0)
        );
        let () = connected.ask(&["DEL", &name]);
    }
}
