//! Too few descriptors for a command, by the limit that a shell sets.

use std::process::Command;

use crate::disk::numbers;
use crate::harness::text;
use crate::world::{Allowed, DONE_IN_PART, SCENARIOS, World};

/// A command behind a limit of the shell, such as `ulimit -n 10`.
pub fn limited(command: &Command, limit: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit} && exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    let set = command.get_envs();
    shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// The system's loader couldn't even start the program.
const NOT_STARTED: i32 = 127;
const PANICKED: i32 = 101;

#[test]
fn command_without_descriptors_is_done_or_changes_nothing() {
    let mut refused = 0;
    for scenario in SCENARIOS {
        let (allowed, _) = Allowed::by(scenario);
        // Three are the standard ones.
        let mut done = false;
        for most in numbers("descriptors", 2).skip_while(|most| *most < 4) {
            let world = World::new(scenario);
            let when = format!("{}: {most} descriptors", scenario.name);
            let output = limited(&world.scenario(), &format!("ulimit -n {most}")).output();
            let output = output.expect("sh runs");
            done = allowed.is_new(&world, &when);
            let said = text(&output.stderr);
            match output.status.code() {
                Some(0 | DONE_IN_PART) => assert!(done, "{when}: {said}"),
                Some(1 | NOT_STARTED) => {
                    assert!(!done, "{when}: {said}");
                    assert!(
                        !said.contains("panicked") && said.len() > 20,
                        "{when}: {said}"
                    );
                }
                // With hardly any, the runtime panics; it says of what.
                Some(PANICKED) => assert!(!done && said.contains("Too many open files")),
                other => panic!("{when}: {other:?}: {said}"),
            }
            world.assert_clean(&when);
            world.load_next(&when);
            if done {
                break;
            }
            refused += 1;
        }
        assert!(done, "{}", scenario.name);
    }
    println!("{refused} commands had too few descriptors");
}
