package main

type pagesCmd struct{}
type linksCmd struct{}
type exportCmd struct{}
