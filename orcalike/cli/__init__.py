"""The command line: `verbs` has the command, and each verb is a file here."""
