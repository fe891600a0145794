"""The command line: a front end over `parts`. Each command is a module, imported when it is used."""
