//! Which key asks for what. While a filter is written, letters are letters.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::Action;

pub fn action(key: KeyEvent, is_filtering: bool) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => Some(Action::Quit),
        KeyCode::Up => Some(Action::Up),
        KeyCode::Down => Some(Action::Down),
        KeyCode::Home => Some(Action::First),
        KeyCode::End => Some(Action::Last),
        KeyCode::Enter => Some(Action::Open),
        KeyCode::Esc => Some(Action::Back),
        KeyCode::Backspace if is_filtering => Some(Action::Erase),
        KeyCode::Char(letter) if is_filtering && !is_control => Some(Action::Letter(letter)),
        KeyCode::Char(letter) => command(letter),
        _ => None,
    }
}

fn command(letter: char) -> Option<Action> {
    match letter {
        'q' => Some(Action::Quit),
        'k' => Some(Action::Up),
        'j' => Some(Action::Down),
        'g' => Some(Action::First),
        'G' => Some(Action::Last),
        's' => Some(Action::Sort),
        'p' | ' ' => Some(Action::Pause),
        '/' => Some(Action::Filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_letters_while_a_filter_is_written() {
        let key = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        assert_eq!(action(key('q'), false), Some(Action::Quit));
        assert_eq!(action(key('q'), true), Some(Action::Letter('q')));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(control_c, true), Some(Action::Quit));
        assert_eq!(action(key('x'), false), None);
    }
}
