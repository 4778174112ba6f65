//! Interactions from files: every form, and errors in others.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use mingle_recommend::{Form, Interactions, read_interactions};

fn read(text: &str, form: Form) -> Result<Interactions, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let folder = file.path().parent().unwrap().display().to_string();
    let name = file.path().file_name().unwrap().to_string_lossy().into_owned();
    let told = |error: String| error.replace(&folder, "").replace(&name, "FILE");
    read_interactions(file.path(), form).map_err(|error| told(error.to_string()))
}

#[test]
fn all_forms_say_the_same() {
    let expected = Interactions::from_pairs([("1", "10"), ("1", "7"), ("2", "7")]);
    assert_eq!(expected.items(), ["7", "10"], "numbers are sorted as numbers");
    let texts = [
        "user,item\n1,10\n1,7\n2,7\n",
        "item,time,user,rating\r\n10,9,1,4.5\r\n7,8,1,1\r\n\r\n7,-3,2,5\r\n",
        "1::10::5::978300760\n1::7::3::978302109\n2::7::1::1\n",
        "1 10 7\n2 7\n",
        "1\t10\t5\t881250949\n1\t7\t3\t1\n2\t7\t1\t881250949\n",
        "\"user\",\"item\"\n\"1\",\"10\"\n1,7\n2,7",
    ];
    for text in texts {
        assert_eq!(read(text, Form::Auto).as_ref(), Ok(&expected), "{text}");
    }
    assert_eq!(read("1 10 7\n2 7 10\n", Form::Lists).unwrap().count(), 4);
    assert_eq!(read("1 10 7\n2 7 10\n", Form::Pairs).unwrap().count(), 2);
}

#[test]
fn packed_files_are_unpacked_and_packed_rubbish_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"user,item\na,x\n").unwrap();
    let bytes = packed.finish().unwrap();
    fs::write(file.path(), &bytes).unwrap();
    assert_eq!(read_interactions(file.path(), Form::Auto).unwrap().users(), ["a"]);
    fs::write(file.path(), &bytes[..bytes.len() - 9]).unwrap();
    assert!(read_interactions(file.path(), Form::Auto).unwrap_err().to_string().contains("line"));
}

#[test]
fn interactions_in_utf_16_are_those_in_utf_8_packed_or_not() {
    let text = "user,item\nJürg,Zürich\nana,\"Bern, the\"\n";
    let expected = read(text, Form::Auto).unwrap();
    assert_eq!(expected.count(), 2);
    let file = tempfile::NamedTempFile::new().unwrap();
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(order).collect();
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&bytes).unwrap();
        for bytes in [bytes, packed.finish().unwrap()] {
            fs::write(file.path(), &bytes).unwrap();
            assert_eq!(read_interactions(file.path(), Form::Auto).unwrap(), expected);
        }
    }
}

#[test]
fn repeated_lines_count_once_and_users_without_items_are_left_out() {
    let found = read("user,item,rating,time\nb,x,1,5\na,x,1,4\nb,x,5,3\n", Form::Auto).unwrap();
    assert_eq!((found.count(), found.repeated()), (2, 1));
    let lists = read("1 4 5 6\n2\n3 4\n", Form::Auto).unwrap();
    assert_eq!(lists.users(), ["1", "3"]);
}

#[test]
fn a_line_that_cannot_be_understood_is_told_with_its_number() {
    let told = |text, form| read(text, form).unwrap_err();
    for (text, form, expected) in [
        ("user,item\n1,2\n3\n", Form::Auto, "/FILE, line 3: 1 fields, and 2 columns in the head"),
        (
            "user,thing\n1,2\n",
            Form::Auto,
            "/FILE, line 1: the head has no column item: user,item[,rating][,time] is expected, or userId,movieId and the like",
        ),
        ("user,item,rating\n1,2,good\n", Form::Auto, "/FILE, line 2: \"good\" is no number: ratings and times are"),
        ("user,item\n1,\n", Form::Auto, "/FILE, line 2: no item"),
        ("1::2::5\n\n1\n", Form::Auto, "/FILE, line 3: a user and an item are expected"),
        ("1 2\n3\n", Form::Pairs, "/FILE, line 2: a user and an item are expected"),
        (
            "1 2 3 4 5\n1 2,3\n",
            Form::Auto,
            "/FILE, line 2: \"2,3\" is no id: a user and its items are expected, with spaces between",
        ),
        ("", Form::Auto, "/FILE: there are no interactions in it"),
        ("user,item\n", Form::Auto, "/FILE: there are no interactions in it"),
    ] {
        assert_eq!(told(text, form), expected, "{text}");
    }
    assert!("xml".parse::<Form>().unwrap_err().to_string().contains("auto, csv, movielens, lists or pairs"));
}

#[test]
fn lists_of_two_or_three_items_are_told_from_pairs_with_ratings_or_refused() {
    let lists: String = (0..30).map(|user| format!("{user} {} {}\n", user + 7, user + 40)).collect();
    let found = read(&lists, Form::Auto).unwrap();
    assert_eq!((found.users().len(), found.items().len(), found.count()), (30, 60, 60));
    // Four numbers a line, as in a table of users, items, ratings and times.
    let items = |user: usize| [user * 31 % 40, user * 11 % 40 + 40, user * 3 % 40 + 80].map(|item| item.to_string());
    let of_three: String = (0..40).map(|user| format!("{user} {}\n", items(user).join(" "))).collect();
    let found = read(&of_three, Form::Auto).unwrap();
    assert_eq!((found.users().len(), found.items().len(), found.count()), (40, 120, 120));
    assert_eq!(read("1 10 5\n1 11 4\n2 10 1\n", Form::Auto).unwrap().count(), 3);
    // Between tabs, too: a user with all its items is no pair.
    let found = read(&of_three.replace(' ', "\t"), Form::Auto).unwrap();
    assert_eq!((found.users().len(), found.items().len(), found.count()), (40, 120, 120));
    assert_eq!(read("1\t10\t5\n1\t11\t4\n2\t10\t1\n", Form::Auto).unwrap().count(), 3);
    for text in ["1 10 5\n2 7 4\n", "1 10 5 9\n1 7\n2 8 3\n"] {
        let refused = read(text, Form::Auto).unwrap_err();
        assert!(refused.contains("form = \"lists\" or form = \"pairs\""), "{refused}");
    }
}

#[test]
fn tables_are_read_as_other_programs_write_them() {
    let expected = Interactions::from_pairs([("1", "Film, The"), ("2", "So \"it\"")]);
    for text in [
        "\u{feff}user,item\n1,\"Film, The\"\n2,\"So \"\"it\"\"\"\n",
        "userId,movieId,rating,timestamp\n1,\"Film, The\",4.0,964982703\n2,\"So \"\"it\"\"\",3,9\n",
        "user_id:token\titem_id:token\trating:float\n1\tFilm, The\t4\n2\t\"So \"\"it\"\"\"\t3\n",
        "sep=;\nUser;Item\n1;Film, The\n2;\"So \"\"it\"\"\"\n",
    ] {
        assert_eq!(read(text, Form::Auto).as_ref(), Ok(&expected), "{text}");
    }
    let refused = read("userId,uid,item\n1,2,3\n", Form::Auto).unwrap_err();
    assert!(refused.contains("several columns for the user: userid, uid"), "{refused}");
}

#[test]
fn heads_between_blanks_are_no_interactions() {
    let expected = Interactions::from_pairs([("1", "10"), ("2", "7")]);
    for text in [
        "user item\n1 10\n2 7\n",
        "userId movieId rating\n1 10 5\n2 7 4\n",
        "user_id::item_id::rating\n1::10::5\n2::7::1\n",
        "User ID,Item-ID\n1,10\n2,7\n",
    ] {
        assert_eq!(read(text, Form::Auto).as_ref(), Ok(&expected), "{text}");
    }
    assert_eq!(read("user item\n1 10\n2 7\n", Form::Pairs).as_ref(), Ok(&expected));
    assert_eq!(read("user item\n1 10 7\n", Form::Lists).unwrap().count(), 2);
    let turned = read("item user\n10 1\n", Form::Auto).unwrap_err();
    assert!(turned.contains("line 1: the user and the item come first"), "{turned}");
}

#[test]
fn what_would_be_two_ids_or_half_a_line_is_refused_with_its_line() {
    for (text, message) in [
        ("user,item\n1,10\n2,10.0\n", "line 3: \"10.0\" and \"10\" are both ids"),
        ("1 5 6 7 8\n1.0 4 9 3 2\n", "line 2: \"1.0\" and \"1\" are both ids"),
        ("1 5\n1 7\n2 05\n", "line 3: \"05\" and \"5\" are both ids"),
        ("1 5\n1 nan\n2 7\n", "line 2: \"nan\" stands for a missing id"),
        ("user,item,note\n1,10,\"two\nlines\"\n", "line 2: a quote is not closed on this line"),
        ("{\"user\": 1, \"item\": 2}\n{\"user\": 1, \"item\": 3}\n", "line 1: it looks like JSON"),
    ] {
        let refused = read(text, Form::Auto).unwrap_err();
        assert!(refused.contains(message), "{text}: {refused}");
    }
    assert_eq!(read("user,item\n1.0,10\n2.0,10\n", Form::Auto).unwrap().users(), ["1.0", "2.0"]);
}
