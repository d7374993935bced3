use super::command;

fn of(arguments: &[&str]) -> String {
    command(arguments.iter().map(|&argument| argument.to_owned()))
}

#[test]
fn the_command_names_no_place_on_the_machine() {
    assert_eq!(of(&[]), "make bench");
    assert_eq!(of(&["--data", "/a/b", "--record=/c/d"]), "make bench");
    assert_eq!(
        of(&["--only", "shared", "--data=/a/b", "--tasks", "5"]),
        "make bench ARGS=\"--only shared --tasks 5\""
    );
}
