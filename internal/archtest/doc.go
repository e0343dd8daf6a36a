// Package archtest answers: is the repository still built the way it says?
//
// Rules that only live in a document are kept until somebody is in a hurry.
// The ones that a program can check are checked here, over the sources as they
// lie on disk, and each failure says why the rule exists:
//
//	rooms_test.go    which room may import which; what pure policy may touch
//	sources_test.go  package comments, gofmt, nothing that belongs to one machine
//	docs_test.go     guarantees name tests that exist, every direct dependency
//	                 has its line, links in the documents lead somewhere
//
// The package has no code of its own outside its tests. They read files and
// nothing else: no network, no build, a second or so. Rules are functions of
// a parsed tree, so each one is also run over a small tree that breaks it.
package archtest
